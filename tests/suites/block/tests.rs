use super::*;

const BEGIN: Option<TransactionCommand> = Some(TransactionCommand::Begin);
const COMMIT: Option<TransactionCommand> = Some(TransactionCommand::Commit);
const BACK: Option<TransactionCommand> = Some(TransactionCommand::RollbackToSavepoint);

#[test]
fn refusals_fail_open_blocks_until_their_end() {
    let mut block = Block::default();
    block.refuse(None);
    assert_eq!(block, Block::default());
    block.accept(BEGIN);
    block.refuse(None);
    assert!(block.has_failed && block.is_undone_by(COMMIT));
    block.accept(BACK);
    assert!(block.is_open && !block.has_failed && !block.is_undone_by(COMMIT));
    block.accept(COMMIT);
    assert_eq!(block, Block::default());
}

#[test]
fn a_commit_that_is_refused_ends_the_block() {
    let mut block = Block { is_open: true, has_failed: false };
    block.refuse(COMMIT);
    assert_eq!(block, Block::default());
}
