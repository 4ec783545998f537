//! What parents know of their children, whichever queues these lie in; and whole trees. No call changes anything: children tell
//! their parents how they ended in `lua/states/parents.lua`.

use std::collections::{BTreeMap, HashSet};

use crate::{
    error::Result,
    job::{msgpack::Packer, whole::read_all, Job},
    keys::Keys,
    queue::Queue,
    redis::call::library::{args, READ_DEPENDENCIES},
};

/// Most children that one script call reads.
const CHILDREN_A_CALL: u32 = 1000;

/// So many children with their values a page has in any case: BullMQ keeps them in a small hash, which a scan gives whole.
const FEW_CHILDREN: u32 = 512;

/// A job's children, by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// Completed; with what they returned.
    Processed,
    /// Waited for.
    Unprocessed,
    /// Failed, and done all the same; with why.
    Ignored,
    /// Failed, and failed the parent.
    Failed,
}

impl ChildKind {
    /// In BullMQ's order.
    pub const ALL: [Self; 4] = [Self::Processed, Self::Unprocessed, Self::Failed, Self::Ignored];

    /// The kind of that name, in BullMQ's words.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "processed" => Self::Processed,
            "unprocessed" => Self::Unprocessed,
            "ignored" => Self::Ignored,
            "failed" => Self::Failed,
            _ => return None,
        })
    }

    fn key(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Unprocessed => "children",
            Self::Ignored => "ignored",
            Self::Failed => "faults",
        }
    }

    /// Each child is followed by a value.
    fn has_values(self) -> bool {
        matches!(self, Self::Processed | Self::Ignored)
    }

    /// Texts that a child takes.
    fn width(self) -> usize {
        1 + usize::from(self.has_values())
    }
}

/// Some children of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildPage {
    /// Kind.
    pub kind: ChildKind,
    /// Where the page before ended; 0 at first.
    pub cursor: u64,
    /// About how many; of the failed ones the rank behind the last.
    pub extent: Extent,
}

/// How much of a kind is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it; of more than a thousand in steps, in which a child that ends meanwhile may be of two kinds, or of none.
    Whole,
    /// So much.
    Count(u32),
    /// Only how many there are.
    Number,
}

/// A page of children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Children {
    /// Where the next page starts; 0 when this was the last. For [`Extent::Number`]: how many there are.
    pub cursor: u64,
    /// Keys, `<qualified name of the queue>:<id>`; of processed and ignored ones key and value in turn.
    pub values: Vec<String>,
}

/// Children by rank, with their jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildRange {
    /// As [`Children::values`].
    pub values: Vec<String>,
    /// Those of the children that exist.
    pub jobs: Vec<Job>,
    /// Children there are.
    pub total: usize,
}

/// A job of a tree.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// Its queue.
    pub keys: Keys,
    /// The job; `None` when it is gone.
    pub job: Option<Job>,
    /// Indexes of its children, which come behind it; none are looked for below the last level.
    pub children: Vec<usize>,
    id: String,
    // how else its key may be read
    other: Option<(Keys, String)>,
}

impl TreeNode {
    fn new((keys, id): (Keys, String), other: Option<(Keys, String)>) -> Self {
        Self {
            keys,
            job: None,
            children: Vec::new(),
            id,
            other,
        }
    }

    /// Ids of three parts may be custom ones, and a prefix may have parts as well.
    fn of_key(key: &str) -> Option<Self> {
        Some(Self::new(split(key, 1)?, split(key, 3)))
    }
}

/// Queue and id of a child's key, for an id of so many parts.
pub(crate) fn split(key: &str, parts: usize) -> Option<(Keys, String)> {
    let (at, _) = key.rmatch_indices(':').nth(parts - 1)?;
    let (prefix, name) = key[..at].rsplit_once(':')?;
    Some((Keys::new(prefix, name), key[at + 1..].to_owned()))
}

impl Queue {
    /// Pages of a job's children.
    pub async fn children_pages(&self, id: &str, pages: &[ChildPage]) -> Result<Vec<Children>> {
        let mut found = self.pages_of(self.keys(), &[id], pages).await?;
        for (page, children) in pages.iter().zip(&mut found) {
            match page.extent {
                Extent::Whole => self.read_rest((self.keys(), id), *page, children, usize::MAX).await?,
                Extent::Count(_) => self.read_few((self.keys(), id), *page, children).await?,
                Extent::Number => {}
            }
        }
        Ok(found)
    }

    /// Goes on with a first page where all of the kind are few.
    async fn read_few(&self, place: (&Keys, &str), mut page: ChildPage, known: &mut Children) -> Result<()> {
        if known.cursor == 0 || page.cursor != 0 || !page.kind.has_values() {
            return Ok(());
        }
        page.extent = Extent::Count(FEW_CHILDREN);
        let mut all = known.clone();
        self.read_rest(place, page, &mut all, FEW_CHILDREN as usize + 1).await?;
        if all.cursor == 0 && all.values.len() <= 2 * FEW_CHILDREN as usize {
            *known = all;
        }
        Ok(())
    }

    /// Goes on with a page, each child once, up to about `most` of them.
    async fn read_rest(
        &self,
        (keys, id): (&Keys, &str),
        mut page: ChildPage,
        known: &mut Children,
        most: usize,
    ) -> Result<()> {
        if known.cursor == 0 {
            return Ok(());
        }
        let width = page.kind.width();
        let mut seen: HashSet<String> = known.values.iter().step_by(width).cloned().collect();
        while known.cursor != 0 && seen.len() < most {
            page.cursor = known.cursor;
            if page.kind == ChildKind::Failed && page.extent != Extent::Whole {
                // there the cursor is a rank, and goes on for ever
                page.extent = Extent::Count(known.cursor as u32 + CHILDREN_A_CALL);
                if (seen.len() as u64) < known.cursor {
                    break;
                }
            }
            let Some(more) = self.pages_of(keys, &[id], &[page]).await?.pop() else {
                break;
            };
            known.cursor = more.cursor;
            for child in more.values.chunks_exact(width) {
                if seen.insert(child[0].clone()) {
                    known.values.extend_from_slice(child);
                }
            }
        }
        Ok(())
    }

    /// A job's children of one kind by rank, which is of no order; `stop` is included, -1 is the last.
    pub async fn children_range(&self, id: &str, kind: ChildKind, start: usize, stop: i64) -> Result<ChildRange> {
        let whole = ChildPage {
            kind,
            cursor: 0,
            extent: Extent::Whole,
        };
        let mut pages = self.children_pages(id, &[whole]).await?;
        let values = pages.pop().map(|page| page.values).unwrap_or_default();
        let width = kind.width();
        let total = values.len() / width;
        let end = usize::try_from(stop).map_or(total, |stop| total.min(stop.saturating_add(1)));
        let start = start.min(end);
        let values = values[start * width..end * width].to_vec();
        let mut nodes: Vec<TreeNode> = values
            .iter()
            .step_by(width)
            .filter_map(|key| TreeNode::of_key(key))
            .collect();
        let all: Vec<usize> = (0..nodes.len()).collect();
        self.read_nodes(&mut nodes, &all).await?;
        let jobs = nodes.into_iter().filter_map(|node| node.job).collect();
        Ok(ChildRange { values, jobs, total })
    }

    /// A job with its children and theirs, `depth` levels with its own; about `most` children of each kind. Each node comes behind its
    /// parent; children in the order of [`ChildKind::ALL`]. A call for 200 jobs, and for a thousand children of a parent.
    pub async fn tree(&self, keys: Keys, id: &str, depth: u32, most: u32) -> Result<Vec<TreeNode>> {
        let mut nodes = vec![TreeNode::new((keys, id.to_owned()), None)];
        let mut level = vec![0];
        for below in (0..depth.max(1)).rev() {
            self.read_nodes(&mut nodes, &level).await?;
            if below == 0 {
                break;
            }
            // of most nothing needs to be asked
            level.retain(|at| nodes[*at].job.as_ref().is_some_and(|job| job.fields.children.is_some()));
            level = self.add_children(&mut nodes, &level, most).await?;
            if level.is_empty() {
                break;
            }
        }
        Ok(nodes)
    }

    /// Adds nodes for the children of some; gives their indexes.
    async fn add_children(&self, nodes: &mut Vec<TreeNode>, parents: &[usize], most: u32) -> Result<Vec<usize>> {
        let pages = ChildKind::ALL.map(|kind| ChildPage {
            kind,
            cursor: 0,
            extent: Extent::Count(most.min(CHILDREN_A_CALL)),
        });
        let parents_a_call = (2 * CHILDREN_A_CALL / most.max(1)).clamp(1, 100) as usize;
        let mut added = Vec::new();
        for group in by_queue(nodes, parents) {
            for some in group.chunks(parents_a_call) {
                let ids: Vec<&str> = some.iter().map(|at| nodes[*at].id.as_str()).collect();
                let mut found = self.pages_of(&nodes[some[0]].keys, &ids, &pages).await?;
                for (at, found) in some.iter().zip(found.chunks_mut(pages.len())) {
                    for (page, children) in pages.iter().zip(found) {
                        let place = (&nodes[*at].keys, nodes[*at].id.as_str());
                        self.read_rest(place, *page, children, most as usize).await?;
                        self.read_few(place, *page, children).await?;
                        let keys = children.values.iter().step_by(page.kind.width());
                        for node in keys.filter_map(|key| TreeNode::of_key(key)) {
                            let child = nodes.len();
                            nodes[*at].children.push(child);
                            added.push(child);
                            nodes.push(node);
                        }
                    }
                }
            }
        }
        Ok(added)
    }

    /// Reads the jobs of some nodes.
    async fn read_nodes(&self, nodes: &mut [TreeNode], wanted: &[usize]) -> Result<()> {
        self.read_once(nodes, wanted).await?;
        let mut again = Vec::new();
        for at in wanted {
            let node = &mut nodes[*at];
            if let (None, Some((keys, id))) = (&node.job, node.other.take()) {
                (node.keys, node.id) = (keys, id);
                again.push(*at);
            }
        }
        self.read_once(nodes, &again).await
    }

    async fn read_once(&self, nodes: &mut [TreeNode], wanted: &[usize]) -> Result<()> {
        for group in by_queue(nodes, wanted) {
            let keys = &nodes[group[0]].keys;
            let ids: Vec<&str> = group.iter().map(|at| nodes[*at].id.as_str()).collect();
            let jobs = read_all(&self.connection().for_keys(&keys.base), keys, &ids).await?;
            let jobs: BTreeMap<_, _> = jobs.into_iter().map(|job| (job.id.clone(), job)).collect();
            for at in group {
                nodes[at].job = jobs.get(&nodes[at].id).cloned();
            }
        }
        Ok(())
    }

    /// Pages of the children of some jobs of one queue: those of the first job, of the second...
    async fn pages_of(&self, keys: &Keys, ids: &[&str], pages: &[ChildPage]) -> Result<Vec<Children>> {
        let ids = Packer::of_texts(ids.iter().copied());
        let mut wanted = Packer::default();
        wanted.array(3 * pages.len());
        for page in pages {
            let count = match page.extent {
                Extent::Whole => 0,
                Extent::Count(count) => i64::from(count.max(1)),
                Extent::Number => -1,
            };
            wanted.str(page.kind.key()).int(page.cursor as i64).int(count);
        }
        let args = args![&ids, &wanted];
        let connection = self.connection().for_keys(&keys.base);
        let mut reply = READ_DEPENDENCIES.ask(&connection, &keys.base, &args).await?;
        let mut found = Vec::with_capacity(reply.len() / 2);
        while !reply.is_empty() {
            found.push(Children {
                cursor: reply.int()? as u64,
                values: reply.array()?.texts()?,
            });
        }
        Ok(found)
    }
}

/// Those nodes, queue by queue.
fn by_queue(nodes: &[TreeNode], wanted: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for at in wanted {
        groups.entry(&nodes[*at].keys.base).or_default().push(*at);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_key_names_its_queue() {
        for (key, base, id) in [
            ("bull:mail:7", "{bull:mail}:", "7"),
            ("{app}:mail:c", "{app}:mail:chasqui:", "c"),
            ("a:b:mail:c", "{a:b:mail}:", "c"),
        ] {
            let node = TreeNode::of_key(key).expect("a key");
            assert_eq!((node.keys.base.as_str(), node.id.as_str()), (base, id));
        }
        assert!(TreeNode::of_key("mail:7").is_none());
    }

    #[test]
    fn an_id_of_three_parts_is_the_second_reading() {
        let node = TreeNode::of_key("bull:mail:repeat:x:1").expect("a key");
        let (keys, id) = node.other.expect("a second reading");
        assert_eq!((keys.base.as_str(), id.as_str()), ("{bull:mail}:", "repeat:x:1"));
        assert!(TreeNode::of_key("bull:mail:7").expect("a key").other.is_none());
    }
}
