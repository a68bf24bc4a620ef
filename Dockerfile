# The image of `make image`, made where there is a builder of images: the program over its libraries and nothing else.
#
#     docker build -t kiln .
#
# --build-arg PROFILE=debug builds sooner what runs slower.
# The program is linked to the C library of the image it is compiled in, and takes that with it.
ARG RUST=rust:1.95-bookworm
FROM ${RUST} AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils ca-certificates python3 && rm -rf /var/lib/apt/lists/*
ARG PROFILE=release
WORKDIR /kiln
COPY . .
RUN if [ "$PROFILE" = release ]; then scripts/release; else cargo build --workspace --bins; fi \
 && scripts/image "$(scripts/target-dir)/$PROFILE/kiln" --root /image.tar \
 && mkdir /image && tar -xf /image.tar -C /image

FROM scratch
COPY --from=build /image /
COPY --from=build --chown=65532:65532 --chmod=750 /image/var/lib/kiln /var/lib/kiln
ENV PATH=/usr/bin
WORKDIR /var/lib/kiln
USER 65532:65532
EXPOSE 5433 8433
ENTRYPOINT ["kiln"]
