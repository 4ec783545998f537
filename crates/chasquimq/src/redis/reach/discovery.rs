//! Asks sentinels for the master, or nodes of a cluster for the one that serves a slot, before each connection.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redis::{Cmd, RedisError, Value};
use tokio::task::JoinSet;

use super::{
    login::{in_time, open_link},
    options::{Address, ConnectOptions, Discovery, DiscoveryKind, SentinelOptions},
};
use crate::{
    error::{Error, Result},
    redis::link::Link,
};

// head start of each node before the next one is asked, too
const HEAD_START: Duration = Duration::from_millis(100);

/// A node's answer: the server, and the nodes to ask next time.
struct Found {
    server: Address,
    nodes: Vec<Address>,
}

/// Finds the server, and remembers which nodes know it.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    nodes: Vec<Address>,
    // the node to ask first; changes when its answer was wrong
    first: usize,
    // the target of the last redirect
    moved: Option<Address>,
}

impl Finder {
    /// Where to connect to.
    /// # Errors
    /// [`Error::Connection`] when no node replies, [`Error::Server`] when none knows.
    pub(crate) async fn find(&self, options: &Arc<ConnectOptions>) -> Result<Arc<ConnectOptions>> {
        let Some(discovery) = &options.discovery else {
            return Ok(options.clone());
        };
        let at = |address: Address| Arc::new(options.at(address));
        if let Some(moved) = self.known().moved.take() {
            return Ok(at(moved));
        }
        let answer = ask_any(options, discovery, self.nodes(discovery)).await?;
        self.known().nodes = answer.nodes;
        Ok(at(answer.server))
    }

    /// The server that was found was the wrong one: next time another node is asked first.
    pub(crate) fn distrust(&self) {
        let mut known = self.known();
        known.first = known.first.wrapping_add(1);
    }

    /// Remembers the target of a redirect.
    pub(crate) fn follow(&self, error: &RedisError, server: &ConnectOptions, discovery: &Discovery) {
        let Some((told, _)) = error.redirect_node() else { return };
        let Some((host, port)) = told.rsplit_once(':') else {
            return;
        };
        self.known().moved = port.parse().ok().map(|port| discovery.seen(host, port, &server.host));
    }

    /// Nodes to ask, in order: those of the options, then those that other nodes named.
    fn nodes(&self, discovery: &Discovery) -> Vec<Address> {
        let known = self.known();
        let mut nodes = discovery.nodes.clone();
        nodes.extend(
            known
                .nodes
                .iter()
                .filter(|node| !discovery.nodes.contains(node))
                .cloned(),
        );
        let first = known.first % nodes.len().max(1);
        nodes.rotate_left(first);
        nodes
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first answer of any node.
async fn ask_any(options: &ConnectOptions, discovery: &Discovery, nodes: Vec<Address>) -> Result<Found> {
    let discovery = Arc::new(discovery.clone());
    let mut asking = JoinSet::new();
    for (place, address) in nodes.into_iter().enumerate() {
        let node = Arc::new(options.of_node(address, &discovery.kind));
        let discovery = discovery.clone();
        asking.spawn(async move {
            tokio::time::sleep(HEAD_START * place as u32).await;
            ask(&node, &discovery).await
        });
    }
    let mut last = Error::Invalid("there is nobody to ask where the server is".to_owned());
    while let Some(asked) = asking.join_next().await {
        match asked {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => last = error,
            Err(_) => {}
        }
    }
    Err(match last {
        Error::Connection { message, code } => {
            let nobody = match discovery.kind {
                DiscoveryKind::Sentinel(_) => "All sentinels are unreachable",
                DiscoveryKind::Cluster { .. } => "All nodes of the cluster are unreachable",
            };
            let message = format!("{nobody}. Last error: {message}");
            Error::Connection { message, code }
        }
        other => other,
    })
}

async fn ask(node: &Arc<ConnectOptions>, discovery: &Discovery) -> Result<Found> {
    match &discovery.kind {
        DiscoveryKind::Sentinel(sentinel) => {
            let (master, sentinels) = in_time(node, ask_sentinel(node, sentinel)).await?;
            read_sentinel(discovery, sentinel, node, &master, &sentinels)
        }
        DiscoveryKind::Cluster { slot } => {
            let slots = in_time(node, ask_node(node)).await?;
            read_cluster(discovery, *slot, node, &slots)
        }
    }
}

async fn ask_sentinel(node: &Arc<ConnectOptions>, options: &SentinelOptions) -> redis::RedisResult<(Value, Value)> {
    let link = open_link(node).await?;
    let master = link.ask(&sentinel("GET-MASTER-ADDR-BY-NAME", options)).await?;
    let others = match options.only_these {
        true => Value::Nil,
        // an ACL may allow the question for the master but not this one
        false => link.ask(&sentinel("SENTINELS", options)).await.unwrap_or(Value::Nil),
    };
    Ok((master, others))
}

fn sentinel(what: &str, options: &SentinelOptions) -> Cmd {
    let mut command = redis::cmd("SENTINEL");
    command.arg(what).arg(&options.master);
    command
}

async fn ask_node(node: &Arc<ConnectOptions>) -> redis::RedisResult<Value> {
    let link: Link = open_link(node).await?;
    link.ask(redis::cmd("CLUSTER").arg("SLOTS")).await
}

fn read_sentinel(
    discovery: &Discovery,
    options: &SentinelOptions,
    node: &ConnectOptions,
    master: &Value,
    sentinels: &Value,
) -> Result<Found> {
    let server = items(master)
        .and_then(|address| address_of(address.first()?, address.get(1)?, discovery, node))
        .ok_or_else(|| {
            let (sentinel, name) = (place(node), &options.master);
            Error::Server(format!("The sentinel {sentinel} knows no master named {name}"))
        })?;
    let mut nodes = vec![place(node)];
    for fields in items(sentinels).unwrap_or_default() {
        let field = |name: &str| {
            let pairs = items(fields)?.chunks_exact(2);
            pairs.filter(|pair| text(&pair[0]) == name).map(|pair| &pair[1]).next()
        };
        if let (Some(host), Some(port)) = (field("ip"), field("port")) {
            nodes.extend(address_of(host, port, discovery, node));
        }
    }
    Ok(Found { server, nodes })
}

fn read_cluster(discovery: &Discovery, slot: u16, node: &ConnectOptions, slots: &Value) -> Result<Found> {
    let (mut server, mut nodes) = (None, Vec::new());
    for range in items(slots).unwrap_or_default() {
        let Some([first, last, serving @ ..]) = items(range) else {
            continue;
        };
        let in_range = number(first).zip(number(last));
        let is_wanted = in_range.is_some_and(|(first, last)| (first..=last).contains(&slot));
        let serving = serving.iter().filter_map(|told| {
            let told = items(told)?;
            address_of(told.first()?, told.get(1)?, discovery, node)
        });
        // the master comes first
        for (place, address) in serving.enumerate() {
            if is_wanted && place == 0 {
                server = Some(address.clone());
            }
            if !nodes.contains(&address) {
                nodes.push(address);
            }
        }
    }
    let server = server.ok_or_else(|| Error::Server(format!("CLUSTERDOWN Hash slot {slot} is not served")))?;
    Ok(Found { server, nodes })
}

/// Of the answer to `CLUSTER SLOTS` one slot of each master.
pub(crate) fn slot_of_each_master(slots: &Value) -> Vec<u16> {
    let (mut masters, mut found) = (Vec::new(), Vec::new());
    for range in items(slots).unwrap_or_default() {
        let Some([first, _, master, ..]) = items(range) else {
            continue;
        };
        // host and port; a node that does not know its own address has none, and there is one such at most
        let address = items(master).unwrap_or_default().iter().take(2).map(text_or_number);
        let address: Vec<_> = address.collect();
        if let Some(slot) = number(first).filter(|_| !masters.contains(&address)) {
            masters.push(address);
            found.push(slot);
        }
    }
    found
}

fn text_or_number(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        other => text(other),
    }
}

fn place(options: &ConnectOptions) -> Address {
    Address {
        host: options.host.clone(),
        port: options.port,
    }
}

fn address_of(host: &Value, port: &Value, discovery: &Discovery, teller: &ConnectOptions) -> Option<Address> {
    Some(discovery.seen(&text(host), number(port)?, &teller.host))
}

fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    }
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        other => text(other).parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn at(host: &str, port: u16) -> Address {
        let host = host.to_owned();
        Address { host, port }
    }

    fn discovery(nat: Vec<(Address, Address)>, kind: DiscoveryKind) -> Discovery {
        let nodes = vec![at("seed", 1)];
        Discovery { nodes, nat, kind }
    }

    fn node() -> ConnectOptions {
        ConnectOptions::default().at(at("seed", 1))
    }

    fn serving(first: i64, last: i64, nodes: &[(&str, i64)]) -> Value {
        let nodes = nodes
            .iter()
            .map(|(host, port)| Value::Array(vec![bulk(host), Value::Int(*port), bulk("id")]));
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    }

    #[test]
    fn a_slot_is_served_by_the_master_of_its_range() {
        let slots = Value::Array(vec![
            serving(0, 99, &[("a", 1), ("b", 2)]),
            serving(100, 16_383, &[("", 3), ("d", 4)]),
        ]);
        let nat = vec![(at("d", 4), at("outside", 44))];
        let found = |slot| {
            read_cluster(
                &discovery(nat.clone(), DiscoveryKind::Cluster { slot }),
                slot,
                &node(),
                &slots,
            )
        };
        assert_eq!(found(99).expect("a server").server, at("a", 1));
        // the second does not know its own address
        let answer = found(100).expect("a server");
        assert_eq!(answer.server, at("seed", 3));
        assert_eq!(answer.nodes, [at("a", 1), at("b", 2), at("seed", 3), at("outside", 44)]);
        let none = Value::Array(vec![serving(0, 99, &[("a", 1)])]);
        let kind = DiscoveryKind::Cluster { slot: 100 };
        assert!(read_cluster(&discovery(Vec::new(), kind), 100, &node(), &none).is_err());
    }

    #[test]
    fn each_master_is_found_by_one_of_its_slots() {
        let slots = Value::Array(vec![
            serving(0, 99, &[("a", 1), ("b", 2)]),
            serving(100, 199, &[("", 1), ("a", 1)]),
            serving(200, 299, &[("a", 1)]),
            serving(300, 399, &[("a", 3)]),
        ]);
        assert_eq!(slot_of_each_master(&slots), [0, 100, 300]);
    }

    #[test]
    fn a_sentinel_tells_the_master_and_other_sentinels() {
        let options = SentinelOptions {
            master: "mymaster".to_owned(),
            ..SentinelOptions::default()
        };
        let discovery = discovery(Vec::new(), DiscoveryKind::Sentinel(options.clone()));
        let master = Value::Array(vec![bulk("m"), bulk("7000")]);
        let other = ["name", "x", "ip", "s2", "port", "26380"].map(bulk).to_vec();
        let sentinels = Value::Array(vec![Value::Array(other)]);
        let answer = read_sentinel(&discovery, &options, &node(), &master, &sentinels).expect("a master");
        assert_eq!(answer.server, at("m", 7000));
        assert_eq!(answer.nodes, [at("seed", 1), at("s2", 26_380)]);
        let unknown = read_sentinel(&discovery, &options, &node(), &Value::Nil, &Value::Nil);
        let told = unknown.err().map(|error| error.to_string());
        assert_eq!(
            told.as_deref(),
            Some("The sentinel seed:1 knows no master named mymaster")
        );
    }

    #[test]
    fn who_was_wrong_is_asked_last() {
        let finder = Finder::default();
        let discovery = discovery(Vec::new(), DiscoveryKind::Cluster { slot: 0 });
        finder.known().nodes = vec![at("seed", 1), at("b", 2), at("c", 3)];
        assert_eq!(finder.nodes(&discovery), [at("seed", 1), at("b", 2), at("c", 3)]);
        finder.distrust();
        assert_eq!(finder.nodes(&discovery), [at("b", 2), at("c", 3), at("seed", 1)]);
    }
}
