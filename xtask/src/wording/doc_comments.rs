//! Doc comments as text: where each begins, and its sentences.

/// Words that open a doc comment as a riddle.
const BANNED_OPENINGS: [&str; 12] =
    ["What", "Who", "Whose", "Whom", "Of", "Where", "How", "When", "Which", "Why", "Those", "That"];

/// Words that no log text begins with, because they name nothing.
const EMPTY_SUBJECTS: [&str; 23] = [
    "what",
    "who",
    "where",
    "how",
    "when",
    "which",
    "why",
    "it",
    "this",
    "that",
    "these",
    "those",
    "there",
    "nothing",
    "nobody",
    "somebody",
    "something",
    "someone",
    "is",
    "was",
    "has",
    "not",
    "of",
];

/// Words of a sentence.
const SENTENCE_WORDS_MAX: usize = 40;

/// A doc comment: its first line, counted from one, and its text without the marks.
pub(super) struct DocComment {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The doc comments of a source file.
pub(super) fn doc_comments(source: &str) -> Vec<DocComment> {
    let mut comments: Vec<DocComment> = Vec::new();
    let mut follows = None;
    for (at, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let mark = ["///", "//!"].into_iter().find(|mark| line.starts_with(mark) && !line.starts_with("////"));
        if let Some(mark) = mark {
            if follows != Some(mark) {
                comments.push(DocComment { line: at + 1, text: String::new() });
            }
            let comment = comments.last_mut().expect("a comment was begun");
            comment.text.push_str(line[mark.len()..].trim());
            comment.text.push('\n');
        }
        follows = mark;
    }
    comments
}

pub(super) fn banned_opening(text: &str) -> Option<&str> {
    let word = text.split(|letter: char| !letter.is_alphabetic()).next()?;
    BANNED_OPENINGS.contains(&word).then_some(word)
}

/// Sentences of more than forty words: code, tables and headings have none.
pub(super) fn long_sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for paragraph in paragraphs(text) {
        let mut words = 0;
        let mut first = String::new();
        for word in paragraph.split_whitespace() {
            words += 1;
            if words <= 6 {
                first.push_str(word);
                first.push(' ');
            }
            if word.ends_with(['.', '!', '?', ':', ';']) {
                sentences.extend(long_sentence(words, &first));
                (words, first) = (0, String::new());
            }
        }
        sentences.extend(long_sentence(words, &first));
    }
    sentences
}

fn long_sentence(words: usize, first: &str) -> Option<String> {
    (SENTENCE_WORDS_MAX < words).then(|| format!("a sentence of {words} words: {first}…"))
}

/// Paragraphs and items of lists, each on one line.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let is_item = line.starts_with("- ") || line.starts_with("* ") || is_numbered(line);
        if line.is_empty() || is_item || line.starts_with('|') || line.starts_with('#') {
            paragraphs.push(String::new());
        }
        if !is_code && !line.starts_with('|') && !line.starts_with('#') {
            let paragraph = paragraphs.last_mut().expect("there is one always");
            paragraph.push(' ');
            paragraph.push_str(line);
        }
    }
    paragraphs
}

/// Tells whether a line begins an item of a numbered list.
fn is_numbered(line: &str) -> bool {
    line.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with(". ") && !line.starts_with('.')
}

/// Tells whether a log text begins with a word that names nothing.
pub(super) fn lacks_subject(text: &str) -> bool {
    let word = text.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    EMPTY_SUBJECTS.contains(&word.as_str())
}
