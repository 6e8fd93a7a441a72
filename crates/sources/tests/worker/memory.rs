//! What a world remembers: what workers said, and the last good text of each file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;
use toolcrib_core::store::{Descriptions, LastGood, Logs};

/// What workers said beside the protocol.
#[derive(Default)]
pub struct Said(Mutex<Vec<u8>>);

impl Said {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Logs for Said {
    fn append(&self, _: &str, text: &[u8]) {
        let mut said = self.0.lock().unwrap();
        if said.len() < 1_000_000 {
            said.extend_from_slice(text);
            said.push(b'\n');
        }
    }
}

/// Last good texts in memory.
#[derive(Default)]
pub struct LastGoodInMemory(Mutex<HashMap<(PathBuf, String), Vec<u8>>>);

impl LastGood for LastGoodInMemory {
    fn read(&self, folder: &Path, file: &str) -> Option<Vec<u8>> {
        let kept = self.0.lock().unwrap();
        kept.get(&(folder.to_path_buf(), file.to_owned())).cloned()
    }

    fn keep(&self, folder: &Path, texts: &[(String, Vec<u8>)]) {
        let texts = texts.iter().cloned();
        let named = texts.map(|(file, text)| ((folder.to_path_buf(), file), text));
        self.0.lock().unwrap().extend(named);
    }

    fn forget(&self, folder: &Path, files: &[String]) {
        let mut kept = self.0.lock().unwrap();
        kept.retain(|(of, file), _| of != folder || !files.contains(file));
    }

    fn retain(&self, folder: &Path, files: &[String]) {
        let mut kept = self.0.lock().unwrap();
        kept.retain(|(of, file), _| of != folder || files.contains(file));
    }
}

/// Descriptions in memory.
#[derive(Default)]
pub struct Described(Mutex<HashMap<String, Value>>);

impl Descriptions for Described {
    fn read(&self, hash: &str) -> Option<Value> {
        self.0.lock().unwrap().get(hash).cloned()
    }

    fn keep(&self, hash: &str, description: &Value) {
        let mut kept = self.0.lock().unwrap();
        kept.insert(hash.to_owned(), description.clone());
    }
}
