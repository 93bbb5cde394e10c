//! Which node an operation is sent to: that of `perf/systems/cql/client.py`'s policies, without an allocation.
//!
//! Where every node holds every row, the nodes take turns. Else a request goes to the first replica of
//! its row that is connected. On a sharded node it goes to the shard that has the row, where that is known.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};

use scylla::cluster::metadata::Strategy;
use scylla::cluster::{ClusterState, Node, NodeRef};
use scylla::policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::routing::Shard;
use std::sync::Arc;

/// The policy of one session; each has turns of its own.
#[derive(Debug)]
pub struct Turns {
    everywhere: bool,
    turn: AtomicUsize,
}

impl Turns {
    /// Says which rows the nodes hold: each of them every row, or each of them some.
    pub fn new(everywhere: bool) -> Self {
        Self {
            everywhere,
            turn: AtomicUsize::new(0),
        }
    }

    /// Gives all nodes, beginning with the one whose turn it is.
    fn next_nodes<'a>(
        &self,
        cluster: &'a ClusterState,
    ) -> impl Iterator<Item = &'a Arc<Node>> + use<'a> {
        let nodes = cluster.get_nodes_info();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        let (late, early) = nodes.split_at(first);
        early.iter().chain(late)
    }
}

impl LoadBalancingPolicy for Turns {
    fn pick<'a>(
        &'a self,
        request: &'a RoutingInfo,
        cluster: &'a ClusterState,
    ) -> Option<(NodeRef<'a>, Option<Shard>)> {
        if !self.everywhere {
            let found = replicas(request, cluster).find(|(node, _)| node.is_connected());
            if let Some((node, shard)) = found {
                return Some((node, Some(shard)));
            }
        }
        let node = self.next_nodes(cluster).find(|node| node.is_connected())?;
        Some((node, shard_of(node, request, cluster)))
    }

    fn fallback<'a>(
        &'a self,
        request: &'a RoutingInfo,
        cluster: &'a ClusterState,
    ) -> FallbackPlan<'a> {
        let others = self.next_nodes(cluster).map(|node| (node, None));
        if self.everywhere {
            return Box::new(others);
        }
        let first = replicas(request, cluster).map(|(node, shard)| (node, Some(shard)));
        Box::new(first.chain(others))
    }

    fn name(&self) -> String {
        "Turns".to_owned()
    }
}

/// Gives the shard of a node that has the row; any, if that is not known, and the only one of most.
fn shard_of(node: &Arc<Node>, request: &RoutingInfo, cluster: &ClusterState) -> Option<Shard> {
    if node.sharder().is_none() {
        return Some(0);
    }
    let mut found = replicas(request, cluster);
    found
        .find(|(replica, _)| replica.host_id == node.host_id)
        .map(|(_, shard)| shard)
}

/// Gives the replicas of a request's row, the one that owns its token first; none if that is not known.
fn replicas<'a>(
    request: &RoutingInfo,
    cluster: &'a ClusterState,
) -> impl Iterator<Item = (NodeRef<'a>, Shard)> + use<'a> {
    let found = request.token.zip(request.table).and_then(|(token, table)| {
        let strategy: &Strategy = &cluster.get_keyspace(table.ks_name())?.strategy;
        Some(
            cluster
                .replica_locator()
                .replicas_for_token(token, strategy, None, table),
        )
    });
    let mut found = found.map(IntoIterator::into_iter);
    iter::from_fn(move || found.as_mut()?.next())
}
