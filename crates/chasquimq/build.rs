//! Flattens `-- @include lib/<name>` lines, so that a script's text and SHA-1 are known at compile time.
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
        let text = flatten(lua, &fs::read_to_string(lua.join(format!("{name}.lua")))?)?;
        let sha = sha1_smol::Sha1::from(&text).digest().to_string();
        let constant = name.to_uppercase();
        code.push_str(&format!(
            "/// `lua/{name}.lua`, includes flattened.\npub static {constant}: Script = Script {{ name: {name:?}, text: {text:?}, sha: {sha:?} }};\n"
        ));
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scripts.rs"), code)?;
    Ok(())
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
