//! What holds for every script file: a header that says what the code does, inputs bound once, nothing unused, a test.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use chasquimq::redis::call::library::KEYS;

const CALLED: [&str; 2] = ["transitions", "reads"];
const FIELDS: [&str; 7] = ["KEYS", "ARGV", "RETURNS", "ERRORS", "EVENTS", "COST", "SOURCE"];
/// Scripts with arguments for each of their inputs' items read the rest below their first lines.
const VARIADIC: [(&str, &str); 7] = [
    ("add", "batch.args"),
    ("add_and_step", "unpack(args, 3)"),
    ("add_frames", "args[at"),
    ("add_flows", "args[FIRST_BODY"),
    ("log_job", "args[at"),
    ("step", "unpack(args, 2)"),
    ("step_job", "unpack(args, 13)"),
];
const MOST_PARAMETERS: usize = 6;

/// How a transition's function begins.
const FUNCTION: &str = "\nreturn function(keys";

struct File {
    name: String,
    text: String,
}

impl File {
    fn lines(&self) -> Vec<&str> {
        self.text.lines().collect()
    }

    /// The comment at the top.
    fn header(&self) -> Vec<&str> {
        self.text.lines().take_while(|line| line.starts_with("--")).collect()
    }

    /// Text of a header field, with its continuation lines.
    fn field(&self, field: &str) -> Option<String> {
        let header = self.header().join("\n").replace("\n--         ", " ");
        let start = header.find(&format!("{field} "))?;
        let rest = &header[start + field.len()..];
        let end = FIELDS
            .iter()
            .filter_map(|other| rest.find(&format!("{other} ")))
            .min()
            .unwrap_or(rest.len());
        Some(rest[..end].replace("\n--", "").trim().to_owned())
    }

    /// Names of the arguments that the header promises, and whether more follow.
    fn promised(&self) -> (Vec<String>, bool) {
        let text = self.field("ARGV").unwrap_or_default();
        let (mut depth, mut outside) = (0, String::new());
        for char in text.chars() {
            match char {
                '(' | '{' | '[' => depth += 1,
                ')' | '}' | ']' => depth -= 1,
                _ if depth == 0 => outside.push(char),
                _ => {}
            }
        }
        let mut names: Vec<String> = outside.split(',').map(|name| name.trim().to_owned()).collect();
        let more = names.iter().position(|name| name.starts_with("then "));
        names.truncate(more.unwrap_or(names.len()));
        names.retain(|name| name != "none");
        (names, more.is_some())
    }

    /// The code of the function.
    fn function(&self) -> &str {
        let behind = self.text.split_once(FUNCTION).map_or("", |(_, code)| code);
        behind.split_once('\n').map_or("", |(_, code)| code)
    }

    /// The `local` lines at its top.
    fn bindings(&self) -> String {
        let bindings = self.function().lines().take_while(|line| line.starts_with("  local "));
        bindings.collect::<Vec<_>>().join("\n")
    }
}

/// The files of the folders of what is called from outside, or of all others: the engine's, and those of the crate that moves BullMQ's queues.
fn files(are_called: bool) -> Vec<File> {
    let paths = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("a folder");
        entries
            .map(|entry| entry.expect("entry").path())
            .collect::<Vec<PathBuf>>()
    };
    let folders =
        ["lua", "../chasquimq-migrate/lua"].map(|lua| paths(&Path::new(env!("CARGO_MANIFEST_DIR")).join(lua)));
    let mut files: Vec<File> = folders
        .into_iter()
        .flatten()
        .filter(|folder| folder.is_dir() && CALLED.iter().any(|name| folder.ends_with(name)) == are_called)
        .flat_map(|folder| paths(&folder))
        .map(|path| File {
            name: path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .expect("name")
                .to_owned(),
            text: fs::read_to_string(&path).expect("text"),
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!files.is_empty());
    files
}

/// Transitions and reads.
fn scripts() -> Vec<File> {
    files(true)
}

/// Modules.
fn libraries() -> Vec<File> {
    files(false)
}

fn nothing_wrong(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The number that stands in `[...]` behind each `KEYS` or `ARGV`.
fn indexes(text: &str, array: &str) -> Vec<usize> {
    let open = format!("{array}[");
    let places = text.match_indices(&open).map(|(at, found)| &text[at + found.len()..]);
    places.filter_map(|rest| rest.split(']').next()?.parse().ok()).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_')
        .filter(|word| !word.is_empty())
}

/// Code without comments and texts.
fn bare(line: &str) -> String {
    let mut code = String::new();
    let mut quoted = false;
    for char in line.split("--").next().unwrap_or("").chars() {
        match char {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            _ => code.push(char),
        }
    }
    code
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[test]
fn headers_are_complete() {
    let mut wrong = Vec::new();
    for script in scripts() {
        let title = format!("-- {}: ", script.name);
        if !script.text.starts_with(&title) {
            wrong.push(format!("{}: the first line does not start with {title:?}", script.name));
        }
        for field in FIELDS {
            if script.field(field).is_none_or(|text| text.is_empty()) {
                wrong.push(format!("{}: no {field} in the header", script.name));
            }
        }
        if !script.field("KEYS").is_some_and(|keys| keys.starts_with("base")) {
            wrong.push(format!("{}: its one key is the base", script.name));
        }
    }
    for library in libraries() {
        if !library.text.starts_with(&format!("-- {}: ", library.name)) {
            wrong.push(format!(
                "module {}: the first line does not say what it is",
                library.name
            ));
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn arguments_are_those_of_the_header_bound_in_its_order() {
    let mut wrong = Vec::new();
    for script in scripts() {
        let (promised, more) = script.promised();
        let bindings = script.bindings();
        if indexes(&bindings, "keys") != [1] {
            wrong.push(format!("{}: the base is bound once", script.name));
        }
        let used = indexes(&bindings, "args");
        if used != (1..=promised.len()).collect::<Vec<_>>() {
            wrong.push(format!("{}: header {promised:?}, bound {used:?}", script.name));
        }
        let mut bound = Vec::new();
        for line in bindings.lines().filter(|line| line.contains("args[")) {
            let names = line
                .trim_start()
                .trim_start_matches("local ")
                .split(" = ")
                .next()
                .unwrap_or("");
            bound.extend(names.split(", ").map(str::to_owned));
        }
        if bound != promised {
            wrong.push(format!("{}: header {promised:?}, bound as {bound:?}", script.name));
        }
        if more != VARIADIC.iter().any(|(name, _)| script.name == *name) {
            wrong.push(format!(
                "{}: a variable number of arguments, or VARIADIC says so wrongly",
                script.name
            ));
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn inputs_are_read_in_the_first_lines_only() {
    let mut wrong = Vec::new();
    for script in scripts() {
        let mut below = script.function()[script.bindings().len()..].to_owned();
        if let Some((_, read)) = VARIADIC.iter().find(|(name, _)| script.name == *name) {
            below = below.replace(read, "");
        }
        if below.contains("keys[1]") || below.contains("args[") {
            wrong.push(format!("{}: keys or args below the first lines", script.name));
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn every_local_is_used() {
    let mut wrong = Vec::new();
    for file in scripts().iter().chain(&libraries()) {
        let lines: Vec<String> = file.lines().into_iter().map(bare).collect();
        for (at, line) in lines.iter().enumerate() {
            let rest = lines[at..].iter().enumerate();
            let inside =
                rest.take_while(|(i, other)| *i == 0 || other.trim().is_empty() || indent(other) >= indent(line));
            let scope: String = inside.map(|(_, other)| other.clone() + "\n").collect();
            for name in declared(line) {
                if words(&scope).filter(|word| *word == name).count() < 2 {
                    wrong.push(format!("{}:{}: {name} is not used", file.name, at + 1));
                }
            }
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn what_a_module_gives_is_used_elsewhere() {
    let (scripts, libraries) = (scripts(), libraries());
    let everything: String = scripts
        .iter()
        .chain(&libraries)
        .map(|file| file.text.as_str())
        .collect();
    let mut wrong = Vec::new();
    for library in &libraries {
        let given = library.text.rsplit_once("\nreturn {\n").map_or("", |(_, given)| given);
        for name in given
            .lines()
            .filter_map(|line| line.trim().split_once(" = "))
            .map(|(name, _)| name)
        {
            if !everything.contains(&format!("{}.{name}", alias(&library.name))) {
                wrong.push(format!("module {}: nobody uses its {name}", library.name));
            }
        }
    }
    nothing_wrong(wrong);
}

/// What files that need a module call it.
fn alias(module: &str) -> String {
    let words = module.split('_');
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Names that a line declares, parameters included.
fn declared(line: &str) -> Vec<String> {
    let code = line.trim_start();
    let mut names: Vec<&str> = Vec::new();
    if let Some(rest) = code.strip_prefix("local function ") {
        names.extend(rest.split('(').next());
    } else if let Some(rest) = code.strip_prefix("local ") {
        names.extend(rest.split(" = ").next().unwrap_or("").split(','));
    }
    names.extend(parameters(code));
    if let Some(rest) = code.strip_prefix("for ") {
        names.extend(
            rest.split(" in ")
                .next()
                .unwrap_or("")
                .split(" = ")
                .next()
                .unwrap_or("")
                .split(','),
        );
    }
    let names = names.into_iter().map(str::trim);
    names
        .filter(|name| !name.is_empty() && *name != "_" && *name != "...")
        .map(str::to_owned)
        .collect()
}

fn parameters(code: &str) -> Vec<&str> {
    let Some(at) = code.find("function") else {
        return Vec::new();
    };
    let list = code[at..]
        .split('(')
        .nth(1)
        .and_then(|rest| rest.split(')').next())
        .unwrap_or("");
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[test]
fn functions_take_few_parameters() {
    let mut wrong = Vec::new();
    for file in libraries() {
        for line in file.lines() {
            let parameters = parameters(&bare(line)).len();
            // a queue, and of an event: its name, a job, where it was, and a field with its value
            if parameters > MOST_PARAMETERS {
                wrong.push(format!("module {}: {line}", file.name));
            }
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn every_key_in_the_code_is_in_the_header() {
    let mut wrong = Vec::new();
    for script in scripts() {
        let keys = script.field("KEYS").unwrap_or_default();
        let listed: BTreeSet<&str> = words(&keys).collect();
        for line in script.lines() {
            for (at, found) in line.match_indices("base .. '") {
                let key = line[at + found.len()..].split('\'').next().unwrap_or("");
                let key = key.split(':').next().unwrap_or("");
                if !key.is_empty() && !listed.contains(key) && !keys.contains(key) {
                    wrong.push(format!("{}: {key} is not among its KEYS", script.name));
                }
            }
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn error_codes_are_known_to_the_engine() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let known = ["error.rs", "add/producer.rs"]
        .map(|file| fs::read_to_string(engine.join(file)).expect("source"))
        .concat();
    let mut wrong = Vec::new();
    for script in scripts() {
        let errors = script.field("ERRORS").unwrap_or_default();
        let codes = errors
            .split([' ', ','])
            .filter(|word| word.starts_with('-') && word[1..].parse::<u8>().is_ok());
        for code in codes {
            if !known.contains(&format!("{code} => ")) {
                wrong.push(format!("{}: nobody knows the error {code}", script.name));
            }
            let returns = script.field("RETURNS").unwrap_or_default();
            if !returns.contains(code) && !errors.starts_with("rejected: ") {
                wrong.push(format!("{}: {code} is not among its RETURNS", script.name));
            }
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn every_script_has_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lua");
    let modules = fs::read_to_string(tests.join("main.rs")).expect("main.rs");
    let mut wrong = Vec::new();
    for script in scripts() {
        let file = tests.join(format!("{}.rs", script.name));
        let folder = tests.join(&script.name).join("mod.rs");
        if !(file.is_file() || folder.is_file()) || !modules.contains(&format!("mod {};", script.name)) {
            wrong.push(format!("{} has no test", script.name));
        }
    }
    nothing_wrong(wrong);
}

#[test]
fn every_key_in_the_code_is_in_the_schema() {
    let known: BTreeSet<&str> = KEYS.iter().map(|(name, _)| stem(name)).collect();
    let mut wrong = Vec::new();
    for file in scripts().iter().chain(&libraries()) {
        for line in file.lines() {
            for (at, found) in line.match_indices("queue.base .. '") {
                let key = line[at + found.len()..].split('\'').next().unwrap_or("");
                if !known.contains(stem(key)) {
                    wrong.push(format!("{}: {key} is not in schema.txt", file.name));
                }
            }
        }
    }
    for (name, _) in KEYS {
        let quoted = format!("'{}", stem(name));
        if !scripts()
            .iter()
            .chain(&libraries())
            .any(|file| file.text.contains(&quoted))
        {
            wrong.push(format!("schema.txt: nobody uses {name}"));
        }
    }
    nothing_wrong(wrong);
}

/// What stands before the part of a name that is one of many.
fn stem(name: &str) -> &str {
    name.split(['<', ':']).next().unwrap_or("")
}
