//! Names of a disk in memory: directories with a live and a durable image, and the changes between them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};

use super::{Choice, FileNode};

/// Files and directories by number; number 0 is the root. What no name leads to is dead.
#[derive(Clone)]
pub(super) struct Tree(Vec<Node>);

#[derive(Clone)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Default, Clone)]
pub(super) struct DirNode {
    pub(super) live: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    pending: Vec<Change>,
}

/// A change of names since the directory's last sync. A cut keeps or loses each on its own.
#[derive(Clone)]
pub(super) enum Change {
    Put(String, usize),
    Gone(String),
    Moved(String, String, usize),
}

impl DirNode {
    pub(super) fn sync(&mut self) {
        self.durable.clone_from(&self.live);
        self.pending.clear();
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    fn after_cut(&self, choice: &mut Choice) -> Self {
        let mut names = self.durable.clone();
        for change in &self.pending {
            if !choice.loses() {
                apply(&mut names, change);
            }
        }
        Self { live: names.clone(), durable: names, pending: Vec::new() }
    }
}

fn apply(names: &mut BTreeMap<String, usize>, change: &Change) {
    match change {
        Change::Put(name, node) => {
            names.insert(name.clone(), *node);
        }
        Change::Gone(name) => {
            names.remove(name);
        }
        Change::Moved(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self(vec![Node::Dir(DirNode::default())])
    }
}

impl Tree {
    pub(super) fn add(&mut self, node: Node) -> usize {
        self.0.push(node);
        self.0.len().saturating_sub(1)
    }

    pub(super) fn resolve(&self, path: &Path) -> io::Result<usize> {
        let mut at = 0;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let Some(Node::Dir(dir)) = self.0.get(at) else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            at = *dir.live.get(&*name.to_string_lossy()).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    pub(super) fn file_at(&self, path: &Path) -> io::Result<usize> {
        let node = self.resolve(path)?;
        match self.0.get(node) {
            Some(Node::File(_)) => Ok(node),
            Some(Node::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn file(&mut self, node: usize) -> io::Result<&mut FileNode> {
        match self.0.get_mut(node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) | None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn with_file<T>(&mut self, path: &Path, act: impl FnOnce(&mut FileNode) -> T) -> io::Result<T> {
        let node = self.file_at(path)?;
        self.file(node).map(act)
    }

    pub(super) fn dir(&mut self, node: usize) -> io::Result<&mut DirNode> {
        match self.0.get_mut(node) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn link(&mut self, path: &Path, node: usize) -> io::Result<()> {
        let name = name_of(path)?;
        self.parent(path)?.change(Change::Put(name, node));
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let name = name_of(path)?;
        self.parent(path)?.change(Change::Gone(name));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if from.parent() != to.parent() {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let node = self.resolve(from)?;
        let (from_name, to_name) = (name_of(from)?, name_of(to)?);
        self.parent(from)?.change(Change::Moved(from_name, to_name, node));
        Ok(())
    }

    /// Bytes of all files that a name leads to.
    pub(super) fn used_bytes(&self) -> u64 {
        let (mut used, mut open) = (0_u64, vec![0]);
        while let Some(node) = open.pop() {
            match self.0.get(node) {
                Some(Node::File(file)) => used = used.saturating_add(super::size_of(&file.live)),
                Some(Node::Dir(dir)) => open.extend(dir.live.values()),
                None => {}
            }
        }
        used
    }

    pub(super) fn sync_all(&mut self) {
        for node in &mut self.0 {
            match node {
                Node::File(file) => file.sync(),
                Node::Dir(dir) => dir.sync(),
            }
        }
    }

    pub(super) fn after_cut(&self, choice: &mut Choice) -> Self {
        let cut = |node: &Node| match node {
            Node::File(file) => Node::File(file.after_cut(choice)),
            Node::Dir(dir) => Node::Dir(dir.after_cut(choice)),
        };
        Self(self.0.iter().map(cut).collect())
    }

    fn parent(&mut self, path: &Path) -> io::Result<&mut DirNode> {
        let node = self.resolve(path.parent().unwrap_or(Path::new("")))?;
        self.dir(node)
    }
}

fn name_of(path: &Path) -> io::Result<String> {
    Ok(path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned())
}
