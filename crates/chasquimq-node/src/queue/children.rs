//! What parents know of their children.

use chasquimq::{ChildKind, ChildPage, ChildRange, Children, Extent, Keys, TreeNode};
use napi::{bindgen_prelude::Object, Env, Result};
use napi_derive::napi;

use super::{
    commands::commands,
    job::{to_jobs, NativeJob},
    NativeQueue,
};

/// Which children of a job are asked for.
#[napi(object)]
pub struct NativeChildPage {
    /// `processed`, `unprocessed`, `ignored` or `failed`.
    pub kind: String,
    /// Where the page before ended; 0 at first.
    pub cursor: f64,
    /// About how many; of `failed` the rank behind the last. 0: all of them; -1: only their number.
    pub count: f64,
}

/// Some children of a job.
#[napi(object)]
pub struct NativeChildren {
    /// Where the next page starts, or how many there are.
    pub cursor: f64,
    /// Keys; of `processed` and `ignored` key and value in turn.
    pub values: Vec<String>,
}

/// Children by rank.
#[napi(object)]
pub struct NativeChildRange {
    /// As `NativeChildren.values`.
    pub values: Vec<String>,
    /// Those that exist.
    pub jobs: Vec<NativeJob>,
    /// Children there are.
    pub total: f64,
}

/// A job of a tree.
#[napi(object)]
pub struct NativeTreeNode {
    /// Qualified name of its queue.
    pub queue: String,
    /// The job; not there when it is gone.
    pub job: Option<NativeJob>,
    /// Indexes of its children, which come behind it.
    pub children: Vec<u32>,
}

#[napi]
impl NativeQueue {
    /// Pages of a job's children.
    #[napi(ts_return_type = "Promise<Array<NativeChildren>>")]
    pub fn get_children<'env>(&self, env: &'env Env, id: String, pages: Vec<NativeChildPage>) -> Result<Object<'env>> {
        let pages = pages.iter().map(to_page).collect::<Result<Vec<_>>>()?;
        self.call(env, async move |queue| {
            let found = queue.children_pages(&id, &pages).await?;
            Ok(found.into_iter().map(NativeChildren::from).collect::<Vec<_>>())
        })
    }

    /// A job's children of one kind by rank.
    #[napi(ts_return_type = "Promise<NativeChildRange>")]
    pub fn get_child_range<'env>(
        &self,
        env: &'env Env,
        id: String,
        kind: String,
        start: f64,
        end: f64,
    ) -> Result<Object<'env>> {
        let kind = to_kind(&kind)?;
        self.call(env, async move |queue| {
            let range = queue.children_range(&id, kind, start.max(0.0) as usize, end as i64);
            Ok(NativeChildRange::from(range.await?))
        })
    }
}

commands! {
    /// A job of any queue, with its children and theirs.
    async fn get_tree(queue, prefix: String, name: String, id: String, depth: f64, most: f64) -> Vec<NativeTreeNode> {
        let nodes = queue.tree(Keys::new(&prefix, &name), &id, depth as u32, most as u32).await?;
        Ok(nodes.into_iter().map(NativeTreeNode::from).collect())
    }
}

fn to_kind(name: &str) -> Result<ChildKind> {
    ChildKind::of(name).ok_or_else(|| napi::Error::from_reason(format!("there is no kind of children called {name}")))
}

fn to_page(page: &NativeChildPage) -> Result<ChildPage> {
    Ok(ChildPage {
        kind: to_kind(&page.kind)?,
        cursor: page.cursor as u64,
        extent: match page.count {
            count if count < 0.0 => Extent::Number,
            0.0 => Extent::Whole,
            count => Extent::Count(count as u32),
        },
    })
}

impl From<Children> for NativeChildren {
    fn from(children: Children) -> Self {
        Self {
            cursor: children.cursor as f64,
            values: children.values,
        }
    }
}

impl From<ChildRange> for NativeChildRange {
    fn from(range: ChildRange) -> Self {
        Self {
            values: range.values,
            jobs: to_jobs(range.jobs),
            total: range.total as f64,
        }
    }
}

impl From<TreeNode> for NativeTreeNode {
    fn from(node: TreeNode) -> Self {
        Self {
            queue: node.keys.qualified_name,
            job: node.job.map(NativeJob::from),
            children: node.children.into_iter().map(|at| at as u32).collect(),
        }
    }
}
