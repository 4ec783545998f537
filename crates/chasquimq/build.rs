//! Flattens `-- @include lib/<name>` lines, so that a script's text and SHA-1 are known at compile time, and writes the header's
//! `FLAGS` as the first line that the server wants.
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
        let text = shebang(&source) + &flatten(lua, &source)?;
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

fn flatten(lua: &Path, text: &str) -> Result<String, Box<dyn Error>> {
    let mut flat = String::new();
    for line in text.lines() {
        match line.trim().strip_prefix("-- @include ") {
            Some(include) => {
                let included = fs::read_to_string(lua.join(format!("{include}.lua")))?;
                flat.push_str(&flatten(lua, &included)?);
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
