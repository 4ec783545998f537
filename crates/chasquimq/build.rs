//! Flattens `-- @include lib/<name>` lines, so that a script's text and SHA-1 are known at compile time, puts off what is cold, and
//! writes the header's `FLAGS` as the first line that the server wants.
//!
//! The functions between `-- @cold` and `-- @warm` are made when one of them is called for the first time. A script makes its functions
//! anew in each call, and each is garbage afterwards, which the server collects at the cost of some later call: what few
//! calls need costs the others time.
use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let lua = Path::new("lua");
    println!("cargo:rerun-if-changed=lua");
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(lua)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lua") {
            let name = path.file_stem().and_then(|stem| stem.to_str()).ok_or("script name")?;
            names.push(name.to_owned());
        }
    }
    names.sort();
    let mut code = String::new();
    for name in names {
        let source = fs::read_to_string(lua.join(format!("{name}.lua")))?;
        let text = shebang(&source) + &assemble(lua, &source)?;
        let sha = sha1_smol::Sha1::from(&text).digest().to_string();
        let constant = name.to_uppercase();
        code.push_str(&format!(
            "/// `lua/{name}.lua`, includes flattened.\npub static {constant}: Script = Script {{ name: {name:?}, text: {text:?}, sha: {sha:?} }};\n"
        ));
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scripts.rs"), code)?;
    Ok(())
}

fn shebang(source: &str) -> String {
    let flags = source.lines().find_map(|line| line.strip_prefix("-- FLAGS "));
    flags.map_or(String::new(), |flags| format!("#!lua flags={}\n", flags.trim()))
}

fn assemble(lua: &Path, source: &str) -> Result<String, Box<dyn Error>> {
    let mut cold = Vec::new();
    let flat = flatten(lua, source, &mut cold)?;
    let mut text = String::new();
    if !cold.is_empty() {
        text.push_str("local cold = {}\n");
    }
    for line in flat.lines() {
        let line = cold
            .iter()
            .try_fold(line.to_owned(), |line, function| defer(&line, function))?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

/// A function that is made at its first call, by the function `maker`.
struct Cold {
    name: String,
    maker: String,
}

fn flatten(lua: &Path, text: &str, cold: &mut Vec<Cold>) -> Result<String, Box<dyn Error>> {
    let mut flat = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match line.trim().strip_prefix("-- @") {
            Some("cold") => {
                let group: Vec<&str> = lines.by_ref().take_while(|line| *line != "-- @warm").collect();
                let text = group_of(&group, cold)?;
                flat.push_str(&flatten(lua, &text, cold)?);
            }
            Some(order) => {
                let include = order
                    .strip_prefix("include ")
                    .ok_or_else(|| format!("unknown: @{order}"))?;
                let included = fs::read_to_string(lua.join(format!("{include}.lua")))?;
                flat.push_str(&flatten(lua, &included, cold)?);
            }
            // comments and indentation cost nothing once loaded, but the script travels whole after a flush
            None if line.trim_start().starts_with("--") || line.trim().is_empty() => {}
            None => {
                flat.push_str(line.trim());
                flat.push('\n');
            }
        }
    }
    Ok(flat)
}

/// The text of the function that makes cold functions, fields of `cold`.
fn group_of(lines: &[&str], cold: &mut Vec<Cold>) -> Result<String, Box<dyn Error>> {
    let maker = format!("make_{}", cold.len());
    let mut text = format!("local function {maker}()\n");
    for line in lines {
        match line
            .strip_prefix("local function ")
            .and_then(|definition| definition.split_once('('))
        {
            Some((name, rest)) => {
                text.push_str(&format!("function cold.{name}({rest}\n"));
                cold.push(Cold {
                    name: name.to_owned(),
                    maker: maker.clone(),
                });
            }
            None if line.is_empty() || line.starts_with([' ', '-']) || line.starts_with("end") => {
                text.push_str(&format!("{line}\n"));
            }
            None => return Err(format!("only functions can be cold: {line}").into()),
        }
    }
    Ok(text + "end\n")
}

/// Has a cold function made by whoever calls it first.
fn defer(line: &str, Cold { name, maker }: &Cold) -> Result<String, Box<dyn Error>> {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    let (mut deferred, mut from) = (String::new(), 0);
    for (at, _) in line.match_indices(name.as_str()) {
        let (before, behind) = (&line[..at], &line[at + name.len()..]);
        if before.ends_with(|c| joins(c) || c == '.') || behind.starts_with(joins) {
            continue;
        }
        if !behind.starts_with('(') {
            return Err(format!("{name} is cold, and used without being called").into());
        }
        deferred.push_str(&line[from..at]);
        // a statement that began with a bracket would be taken for more of the one before
        deferred.push_str(&match at {
            0 => format!("if not cold.{name} then {maker}() end cold.{name}"),
            _ => format!("(cold.{name} or {maker}() or cold.{name})"),
        });
        from = at + name.len();
    }
    Ok(deferred + &line[from..])
}
