//! Puts what runs in the server together from folders of Lua files: one library of functions, of all modules and one function a transition, and
//! each transition as a script with the modules that it needs, for servers and users that know no functions, and for crates beside the engine.
//!
//! A transition (`transitions/`) or a read (`reads/`) gives a function of keys and arguments; one that consists of others requires them as
//! modules. A module (the other folders) names the modules that it uses by `require` at its head, and gives a table. The library's name carries
//! a hash of its text: releases that differ live side by side in one server.

#![forbid(unsafe_code)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    fs,
    path::Path,
};

/// What a build script gives.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What all files use. A local is found faster than a global, which lies behind a table that protects it.
const GLOBALS: &str = "redis,cmsgpack,cjson,struct,math,string,table,type,tonumber,ipairs,pairs,next,select,unpack,pcall,error,rawget,setmetatable";

/// The folders of what is called from outside; the others have modules.
const CALLED: [&str; 2] = ["transitions", "reads"];

/// What a file needs, and its text without comments and indentation, which cost nothing once loaded, but travel.
struct Source {
    needs: Vec<String>,
    text: String,
    flags: Vec<String>,
}

/// All files, by name.
#[derive(Default)]
struct Files {
    modules: BTreeMap<String, Source>,
    // what is called from outside
    transitions: BTreeMap<String, Source>,
    // name and type of every key
    schema: Vec<(String, String)>,
}

/// Writes `scripts.rs` of the engine: the library of what is in the folder, and each transition as a function of it and as a script.
/// # Errors
/// What keeps a file from being read, what two files disagree on, or what one needs and there is not.
pub fn write_library(folder: &str) -> Result<()> {
    let mut files = Files::default();
    files.read(folder)?;
    let order = files.in_order()?;

    let mut library = library_globals() + &prelude(&files.modules, order.iter());
    for (name, transition) in &files.transitions {
        let flags: String = transition.flags.iter().map(|flag| format!("'{flag}',")).collect();
        library.push_str(&format!(
            "transition('@_{name}',{{{flags}}},{})\n",
            called(&transition.text)
        ));
    }
    let version = &hash(&library)[..10];
    let library_name = format!("chasquimq_{version}");
    let library = format!(
        "#!lua name={library_name}\n{}",
        library.replace("'@_", &format!("'{library_name}_"))
    );

    let mut code = format!(
        "/// The library's name.\npub static LIBRARY_NAME: &str = {library_name:?};\n/// Its text.\npub static LIBRARY: &str = {library:?};\n"
    );
    for name in files.transitions.keys() {
        code.push_str(&constant(&files, &order, name, Some(format!("{library_name}_{name}"))));
    }
    code.push_str(&format!(
        "/// Name and type of every key of a queue (`lua/schema.txt`).\npub static KEYS: [(&str, &str); {}] = {:?};\n",
        files.schema.len(),
        files.schema
    ));
    write(&code)
}

/// Writes `scripts.rs` of a crate whose transitions are scripts alone, which may use the modules of the engine's folder.
/// # Errors
/// As [`write_library`].
pub fn write_scripts(folder: &str, of_engine: &str) -> Result<()> {
    let mut files = Files::default();
    files.read(of_engine)?;
    let others: BTreeSet<String> = files.transitions.keys().cloned().collect();
    files.read(folder)?;
    let order = files.in_order()?;
    let own = files.transitions.keys().filter(|name| !others.contains(*name));
    write(&own.map(|name| constant(&files, &order, name, None)).collect::<String>())
}

fn write(code: &str) -> Result<()> {
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("scripts.rs"), code)?)
}

/// A transition in Rust.
fn constant(files: &Files, order: &[String], name: &str, function: Option<String>) -> String {
    let text = script(&files.modules, order, &files.transitions[name]);
    let (constant, sha) = (name.to_uppercase(), hash(&text));
    format!(
        "/// {name}.lua in `lua/`.\npub static {constant}: Script = Script {{ name: {name:?}, function: {function:?}, text: {text:?}, sha: {sha:?} }};\n"
    )
}

impl Files {
    /// Adds those of a folder. A name stands for one file, whatever its folder.
    fn read(&mut self, lua: &str) -> Result<()> {
        println!("cargo:rerun-if-changed={lua}");
        let lua = Path::new(lua);
        let schema = lua.join("schema.txt");
        if schema.exists() {
            self.schema = read_schema(&fs::read_to_string(schema)?)?;
            self.modules.insert("schema".to_owned(), schema_module(&self.schema));
        }
        for folder in fs::read_dir(lua)? {
            let folder = folder?.path();
            if !folder.is_dir() {
                continue;
            }
            let is_called = CALLED.iter().any(|name| folder.ends_with(name));
            for file in fs::read_dir(&folder)? {
                let path = file?.path();
                let name = path
                    .file_stem()
                    .and_then(|stem| stem.to_str())
                    .ok_or("a name")?
                    .to_owned();
                if self.modules.contains_key(&name) || self.transitions.contains_key(&name) {
                    return Err(format!("two files are called {name}").into());
                }
                let sources = if is_called {
                    &mut self.transitions
                } else {
                    &mut self.modules
                };
                sources.insert(name, read(&fs::read_to_string(&path)?));
            }
        }
        Ok(())
    }

    /// Says in which order modules are made, each behind those that it needs.
    fn in_order(&mut self) -> Result<Vec<String>> {
        self.share();
        for (name, transition) in &self.transitions {
            if let Some(unknown) = transition.needs.iter().find(|need| !self.modules.contains_key(*need)) {
                return Err(format!("{name} needs {unknown}, which there is not").into());
            }
        }
        in_order(&self.modules)
    }

    /// Transitions of which others consist become modules, and what is left of them requires that.
    fn share(&mut self) {
        let needed: BTreeSet<String> = self.transitions.values().flat_map(|one| one.needs.clone()).collect();
        for (name, transition) in self.transitions.iter_mut().filter(|(name, _)| needed.contains(*name)) {
            let flags = transition.flags.clone();
            let rest = Source {
                needs: vec![name.clone()],
                text: format!("return require('{name}')\n"),
                flags,
            };
            self.modules.insert(name.clone(), std::mem::replace(transition, rest));
        }
    }
}

/// Name and type of every key.
fn read_schema(text: &str) -> Result<Vec<(String, String)>> {
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let mut cells = row.split_whitespace();
        let (name, kind) = cells
            .next()
            .zip(cells.next())
            .ok_or_else(|| format!("schema.txt: {row}"))?;
        Ok((name.to_owned(), kind.to_owned()))
    })
    .collect()
}

/// The module `schema`: of the keys that are not one of many, and not remembered beyond the queue, their names, and their types by name.
fn schema_module(schema: &[(String, String)]) -> Source {
    let is_whole = |(name, _): &&(String, String)| !name.contains('<') && !name.starts_with("memo:");
    let whole = schema.iter().filter(is_whole);
    let names: String = whole.clone().map(|(name, _)| format!("'{name}',")).collect();
    let types: String = whole.map(|(name, kind)| format!("['{name}']='{kind}',")).collect();
    Source {
        needs: Vec::new(),
        text: format!("return {{names={{{names}}},types={{{types}}}}}\n"),
        flags: Vec::new(),
    }
}

fn read(source: &str) -> Source {
    let mut text = String::new();
    for line in source.lines().map(str::trim) {
        if !line.is_empty() && !line.starts_with("--") {
            text.push_str(line);
            text.push('\n');
        }
    }
    let needed = |line: &str| Some(line.split_once(" = require('")?.1.strip_suffix("')")?.to_owned());
    let flags = source.lines().find_map(|line| line.strip_prefix("-- FLAGS "));
    Source {
        needs: text.lines().filter_map(needed).collect(),
        text,
        flags: flags.unwrap_or("").split_whitespace().map(str::to_owned).collect(),
    }
}

/// The modules, each behind those that it needs.
fn in_order(modules: &BTreeMap<String, Source>) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    while order.len() < modules.len() {
        let is_next = |(name, module): &(&String, &Source)| {
            !order.contains(name) && module.needs.iter().all(|need| order.contains(need))
        };
        let Some((name, _)) = modules.iter().find(is_next) else {
            let left = modules.keys().filter(|name| !order.contains(name));
            return Err(format!(
                "these need each other, or what there is not: {}",
                left.cloned().collect::<Vec<_>>().join(", ")
            )
            .into());
        };
        order.push(name.clone());
    }
    Ok(order)
}

/// While a library is loaded most globals are not there yet: the first call finds them.
fn library_globals() -> String {
    format!(
        "local register=redis.register_function\n\
         local function globals() return {GLOBALS} end\n\
         local {GLOBALS}\n\
         local function transition(name,flags,run)\n\
         register{{function_name=name,flags=flags,callback=function(keys,args)\n\
         if not redis then {GLOBALS}=globals() end\n\
         return run(keys,args)\n\
         end}}\n\
         end\n"
    )
}

/// Makes the modules, and what `require` gives.
fn prelude<'a>(modules: &BTreeMap<String, Source>, names: impl Iterator<Item = &'a String>) -> String {
    let mut text = String::from("local modules={}\nlocal function require(name) return modules[name] end\n");
    for name in names {
        text.push_str(&format!("modules['{name}']={}\n", called(&modules[name].text)));
    }
    text
}

/// What a file gives.
fn called(text: &str) -> String {
    format!("(function()\n{text}end)()")
}

/// A transition by itself, with the modules that it needs.
fn script(modules: &BTreeMap<String, Source>, order: &[String], transition: &Source) -> String {
    let mut needed = BTreeSet::new();
    let mut open: Vec<&String> = transition.needs.iter().collect();
    while let Some(name) = open.pop() {
        if needed.insert(name) {
            open.extend(&modules[name].needs);
        }
    }
    // without a head the server lets a script go beyond its slot, and beyond the memory, where a function is refused
    // without such a head the server lets a script reach beyond its slot and its memory, which it lets no function
    let flags = match transition.flags.as_slice() {
        [] => String::new(),
        flags => format!(" flags={}", flags.join(",")),
    };
    let modules = prelude(modules, order.iter().filter(|name| needed.contains(name)));
    let run = called(&transition.text);
    format!("#!lua{flags}\nlocal {GLOBALS}={GLOBALS}\n{modules}local run={run}\nreturn run(KEYS,ARGV)\n")
}

fn hash(text: &str) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}
