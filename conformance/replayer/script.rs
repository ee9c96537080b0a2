//! Scripts: what is asked, in which order, by which connection. `conformance/README.md` shows how they are written.

use std::collections::BTreeMap;

use crate::tree::{Tree, Unreadable, parse_front};

#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) title: String,
    /// What it shows, by the names of the rules.
    pub(crate) rules: Vec<String>,
    pub(crate) act: Act,
}

#[derive(Debug)]
pub(crate) enum Act {
    /// Asks, and waits for the answer.
    Ask(Ask),
    /// Asks, and does not wait.
    Send(String, Ask),
    /// Waits for the answer to what was sent under this name.
    Await(String),
    /// From here on no marker reaches a partition.
    Hold,
    Release,
}

/// Whether there must be an answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owes {
    #[default]
    Answer,
    Nothing,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Ask {
    pub(crate) connection: String,
    pub(crate) api: String,
    pub(crate) version: i16,
    pub(crate) body: Option<Tree>,
    /// What is remembered of the answer: name and path.
    pub(crate) keep: Vec<(String, String)>,
    /// Codes that say "ask again": what timing decides is no rule.
    pub(crate) retry: Vec<i64>,
    /// What the answer must hold before it counts: path, value, and whether it must be so or must not.
    pub(crate) until: Vec<(String, String, bool)>,
    /// Milliseconds after which silence is the answer.
    pub(crate) patience: Option<u64>,
    /// Bytes taken from the end of the frame.
    pub(crate) cut: usize,
    /// Hexadecimal bytes put behind it.
    pub(crate) add: String,
    /// The version the answer is read in, if not the request's.
    pub(crate) read_as: Option<i16>,
    /// Paths that are not recorded.
    pub(crate) ignore: Vec<String>,
    /// Entries of lists that are not of this run are not recorded.
    pub(crate) mine: bool,
    pub(crate) owes: Owes,
}

impl Script {
    /// Reads a script that may use the macros of `common`.
    pub(crate) fn parse(name: &str, common: &str, text: &str) -> Result<Self, Unreadable> {
        let about = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect::<Vec<_>>().join(" ");
        let mut macros = BTreeMap::new();
        for source in [common, text] {
            for block in blocks(&joined(source))? {
                if let Block::Macro(macro_) = block {
                    macros.insert(macro_.name.clone(), macro_);
                }
            }
        }
        let mut reader = Steps { macros, steps: Vec::new(), title: None, unnamed: BTreeMap::new() };
        reader.expand(&joined(text), &BTreeMap::new(), 0)?;
        let mut titles = reader.steps.iter().map(|step| &step.title).collect::<Vec<_>>();
        titles.sort();
        if let Some(pair) = titles.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Unreadable(format!("two steps are called `{}`", pair[0])));
        }
        Ok(Self { name: name.to_owned(), about, steps: reader.steps })
    }

    /// Whether markers are held back in it.
    pub(crate) fn holds(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.act, Act::Hold))
    }
}

/// Lines without comments; one whose brackets are open goes on below.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = 0_i32;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match lines.last_mut() {
            Some(last) if open > 0 => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
        if !line.starts_with('>') {
            let count = |set: &str| i32::try_from(line.chars().filter(|c| set.contains(*c)).count()).unwrap();
            open += count("{[(") - count("}])");
        }
    }
    lines
}

#[derive(Debug, Clone)]
struct Macro {
    name: String,
    parameters: Vec<String>,
    lines: Vec<String>,
}

enum Block {
    Macro(Macro),
    /// Names, a tuple of values for each turn, and what is done in one.
    Loop(Vec<String>, Vec<Vec<String>>, Vec<String>),
    Line(String),
}

fn blocks(lines: &[String]) -> Result<Vec<Block>, Unreadable> {
    let mut found = Vec::new();
    let mut rest = lines.iter();
    while let Some(line) = rest.next() {
        let opens = |line: &str| line.starts_with("def ") || line.starts_with("for ");
        if !opens(line) {
            found.push(Block::Line(line.clone()));
            continue;
        }
        let mut inside = Vec::new();
        let mut depth = 1;
        for line in rest.by_ref() {
            depth += i32::from(opens(line)) - i32::from(line == "end");
            if depth == 0 {
                break;
            }
            inside.push(line.clone());
        }
        let words = |text: &str| split_outside(text, |c| c == ',');
        if let Some((name, parameters)) = line.strip_prefix("def ").and_then(|head| head.split_once('(')) {
            let parameters = words(parameters.trim_end_matches(')'));
            found.push(Block::Macro(Macro { name: name.to_owned(), parameters, lines: inside }));
        } else if let Some((names, turns)) = line.strip_prefix("for ").and_then(|head| head.split_once(" in ")) {
            let turns = split_outside(turns, char::is_whitespace).iter().map(|turn| words(turn)).collect();
            found.push(Block::Loop(words(names), turns, inside));
        } else {
            return Err(Unreadable(format!("`{line}` begins nothing")));
        }
    }
    Ok(found)
}

struct Steps {
    macros: BTreeMap<String, Macro>,
    steps: Vec<Step>,
    title: Option<(String, Vec<String>)>,
    /// Steps without a title so far, by what they do.
    unnamed: BTreeMap<String, usize>,
}

impl Steps {
    fn expand(&mut self, lines: &[String], given: &BTreeMap<String, String>, depth: u32) -> Result<(), Unreadable> {
        if depth > 9 {
            return Err(Unreadable("macros without end".to_owned()));
        }
        for block in blocks(lines)? {
            match block {
                Block::Macro(_) => {}
                Block::Line(line) => {
                    let line = filled(&line, given);
                    self.line(&line, depth).map_err(|wrong| Unreadable(format!("`{line}`: {wrong}")))?;
                }
                Block::Loop(names, turns, inside) => {
                    for turn in turns {
                        let mut all = given.clone();
                        let turn = turn.iter().map(|value| filled(value, given));
                        all.extend(names.iter().cloned().zip(turn));
                        self.expand(&inside, &all, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, depth: u32) -> Result<(), Unreadable> {
        if let Some(title) = line.strip_prefix('>') {
            let (title, rules) = title.trim().trim_end_matches(']').rsplit_once('[').unwrap_or((title, ""));
            let rules = rules.split_whitespace().map(str::to_owned).collect();
            self.title = Some((title.trim().to_owned(), rules));
            return Ok(());
        }
        let (head, arguments) = line.split_once('(').unwrap_or((line, ""));
        if let Some(found) = self.macros.get(head).cloned() {
            let arguments = arguments.trim_end().strip_suffix(')').unwrap_or(arguments);
            let arguments = split_outside(arguments, |c| c == ',');
            if arguments.len() != found.parameters.len() {
                return Err(Unreadable(format!("{} takes {:?}", found.name, found.parameters)));
            }
            let given = found.parameters.iter().cloned().zip(arguments).collect();
            return self.expand(&found.lines, &given, depth + 1);
        }
        let act = act(line)?;
        let (title, rules) = self.title.take().unwrap_or_else(|| (self.name_for(&act), Vec::new()));
        self.steps.push(Step { title, rules, act });
        Ok(())
    }

    fn name_for(&mut self, act: &Act) -> String {
        let what = match act {
            Act::Ask(ask) => ask.api.clone(),
            Act::Send(name, ask) => format!("{} {name}", ask.api),
            Act::Await(name) => format!("answer of {name}"),
            Act::Hold => "hold".to_owned(),
            Act::Release => "release".to_owned(),
        };
        let count = self.unnamed.entry(what.clone()).or_default();
        *count += 1;
        format!("({what} {count})")
    }
}

/// `@name` for each name that is given.
fn filled(line: &str, given: &BTreeMap<String, String>) -> String {
    let mut parts = line.split('@');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_at(part.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(part.len()));
        match given.get(name) {
            Some(value) => out.push_str(value),
            None => out.extend(["@", name]),
        }
        out.push_str(rest);
    }
    out
}

/// The parts between separators that stand in no brackets and no quotes.
fn split_outside(text: &str, separates: impl Fn(char) -> bool) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0;
    let mut quotes = 0;
    for c in text.chars() {
        quotes += i32::from(c == '"');
        depth += i32::from("{[(".contains(c)) - i32::from("}])".contains(c));
        if separates(c) && depth == 0 && quotes % 2 == 0 {
            found.push(String::new());
        } else {
            found.last_mut().unwrap().push(c);
        }
    }
    found.iter().map(|part| part.trim().to_owned()).collect()
}

fn act(line: &str) -> Result<Act, Unreadable> {
    match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["hold"] => return Ok(Act::Hold),
        ["release"] => return Ok(Act::Release),
        ["await", name] => return Ok(Act::Await((*name).to_owned())),
        _ => {}
    }
    if let Some((name, rest)) = line.strip_prefix("send ").and_then(|rest| rest.trim().split_once(' ')) {
        return ask(rest).map(|ask| Act::Send(name.to_owned(), ask));
    }
    ask(line).map(Act::Ask)
}

fn ask(line: &str) -> Result<Ask, Unreadable> {
    let (head, rest) = line.split_once('{').ok_or_else(|| Unreadable("no body".to_owned()))?;
    let (connection, call) = head.split_once(':').unwrap_or(("a", head));
    let (api, version) = call.trim().split_once('/').ok_or_else(|| Unreadable("no version".to_owned()))?;
    let version = version.trim().parse().map_err(|_| Unreadable(format!("`{version}` is no version")))?;
    let (body, options) = parse_front(&line[line.len() - rest.len() - 1..])?;
    let (connection, api) = (connection.trim().to_owned(), api.to_owned());
    let mut ask = Ask { connection, api, version, body: Some(body), ..Ask::default() };
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        if word == "unanswered" {
            ask.owes = Owes::Nothing;
        } else if matches!(word, "mine" | "=>") {
            ask.mine |= word == "mine";
        } else if let Some((name, path)) = word.split_once("=/") {
            ask.keep.push((name.to_owned(), format!("/{path}")));
        } else {
            let value = words.next().ok_or_else(|| Unreadable(format!("`{word}` wants a value")))?;
            option(&mut ask, word, value)?;
        }
    }
    Ok(ask)
}

fn option(ask: &mut Ask, word: &str, value: &str) -> Result<(), Unreadable> {
    let number = || value.parse::<u64>().map_err(|_| Unreadable(format!("`{value}` is no number")));
    match word {
        "retry" => {
            let codes = value.split(',').map(str::parse).collect::<Result<Vec<_>, _>>();
            ask.retry = codes.map_err(|_| Unreadable(format!("`{value}` are no codes")))?;
        }
        "until" => {
            let (path, wanted) = value.split_once('=').ok_or_else(|| Unreadable("until what?".to_owned()))?;
            let positive = !path.ends_with('!');
            let wanted = wanted.trim_matches('"').to_owned();
            ask.until.push((path.trim_end_matches('!').to_owned(), wanted, positive));
        }
        "patience" => ask.patience = Some(number()?),
        "cut" => ask.cut = usize::try_from(number()?).unwrap(),
        "add" => value.clone_into(&mut ask.add),
        "as" => ask.read_as = i16::try_from(number()?).ok(),
        "ignore" => ask.ignore.push(value.to_owned()),
        other => return Err(Unreadable(format!("`{other}` is no option"))),
    }
    Ok(())
}
