#!/bin/sh
# Runs a real S3 server, versitygw, on 127.0.0.1:PORT with the folders below FOLDER as its buckets, until it is killed:
#   s3.sh PORT FOLDER
# Builds it first where it is not in the cache (${KILN_CACHE:-~/.cache/kiln}); that takes some minutes once.
# Ends with status 3 and one line on stderr where the server cannot be had.
set -eu

port=$1
folder=$2
version=1.8.0
home=${KILN_CACHE:-$HOME/.cache/kiln}/versitygw-$version

if [ ! -x "$home/versitygw" ]; then
    if ! command -v go >/dev/null; then
        echo "no S3 server: building versitygw $version needs Go (https://go.dev, or the package golang)" >&2
        exit 3
    fi
    mkdir -p "$home"
    built=$(mktemp -d "$home/build.XXXXXX")
    if ! CGO_ENABLED=0 GOFLAGS= GOBIN=$built nice -n 19 \
        go install "github.com/versity/versitygw/cmd/versitygw@v$version" >"$built/log" 2>&1; then
        echo "no S3 server: building versitygw $version failed: $(tail -n 1 "$built/log")" >&2
        rm -rf "$built"
        exit 3
    fi
    mv "$built/versitygw" "$home/versitygw"
    rm -rf "$built"
fi

mkdir -p "$folder/buckets"
# FOLDER needs extended attributes. With --sidecar the server does without, but then an object and its ETag change one after
# the other, and conditional updates get lost.
exec "$home/versitygw" --quiet --port "127.0.0.1:$port" --access kiln-test --secret kiln-test-secret --region us-east-1 \
    posix "$folder/buckets"
