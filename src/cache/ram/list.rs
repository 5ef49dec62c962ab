//! A slab of nodes, strung on lists by index: queues from whose middle
//! a node can be taken.

/// No node.
const NIL: usize = usize::MAX;

#[derive(Debug)]
struct Link<T> {
    before: usize,
    after: usize,
    item: Option<T>,
}

/// The nodes of several lists.
#[derive(Debug)]
pub(super) struct Slab<T> {
    links: Vec<Link<T>>,
    free: Vec<usize>,
}

/// A first-in, first-out queue over a [`Slab`].
#[derive(Debug)]
pub(super) struct List {
    newest: usize,
    oldest: usize,
}

impl List {
    /// An empty queue.
    pub(super) const fn new() -> Self {
        Self {
            newest: NIL,
            oldest: NIL,
        }
    }

    /// The node that was pushed first.
    pub(super) fn oldest(&self) -> Option<usize> {
        (self.oldest != NIL).then_some(self.oldest)
    }
}

impl<T> Slab<T> {
    /// A slab without nodes.
    pub(super) const fn new() -> Self {
        Self {
            links: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The item of a node in use.
    pub(super) fn get(&self, node: usize) -> Option<&T> {
        self.links.get(node)?.item.as_ref()
    }

    /// The item of a node in use, to change.
    pub(super) fn get_mut(&mut self, node: usize) -> Option<&mut T> {
        self.links.get_mut(node)?.item.as_mut()
    }

    /// Every item, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.links.iter().filter_map(|link| link.item.as_ref())
    }

    /// Puts `item` at the new end of `list`; returns its node.
    pub(super) fn push(&mut self, list: &mut List, item: T) -> usize {
        let link = Link {
            before: list.newest,
            after: NIL,
            item: Some(item),
        };
        let node = self.place(link);
        self.set_after(list.newest, node);
        if list.oldest == NIL {
            list.oldest = node;
        }
        list.newest = node;
        node
    }

    /// Takes a node out of the list that it is on.
    pub(super) fn take(&mut self, list: &mut List, node: usize) -> Option<T> {
        let link = self.links.get_mut(node)?;
        let item = link.item.take()?;
        let (before, after) = (link.before, link.after);
        self.set_after(before, after);
        self.set_before(after, before);
        if list.oldest == node {
            list.oldest = after;
        }
        if list.newest == node {
            list.newest = before;
        }
        self.free.push(node);
        Some(item)
    }

    fn place(&mut self, link: Link<T>) -> usize {
        if let Some(node) = self.free.pop()
            && let Some(slot) = self.links.get_mut(node)
        {
            *slot = link;
            return node;
        }
        self.links.push(link);
        self.links.len() - 1
    }

    fn set_after(&mut self, node: usize, after: usize) {
        if let Some(link) = self.links.get_mut(node) {
            link.after = after;
        }
    }

    fn set_before(&mut self, node: usize, before: usize) {
        if let Some(link) = self.links.get_mut(node) {
            link.before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(slab: &mut Slab<u32>, list: &mut List) -> Vec<u32> {
        let mut items = Vec::new();
        while let Some(node) = list.oldest() {
            items.push(slab.take(list, node).unwrap());
        }
        items
    }

    #[test]
    fn nodes_leave_in_order_wherever_others_are_taken_out() {
        for gone in 0..3 {
            let (mut slab, mut list) = (Slab::new(), List::new());
            let nodes: Vec<_> = (0..3).map(|n| slab.push(&mut list, n)).collect();
            assert_eq!(slab.take(&mut list, nodes[gone]), u32::try_from(gone).ok());
            assert_eq!(slab.take(&mut list, nodes[gone]), None);
            slab.push(&mut list, 9);
            let expected: Vec<u32> = [0, 1, 2, 9]
                .into_iter()
                .filter(|n| usize::try_from(*n).unwrap() != gone)
                .collect();
            assert_eq!(drain(&mut slab, &mut list), expected);
        }
    }

    #[test]
    fn freed_nodes_are_used_again() {
        let (mut slab, mut list) = (Slab::new(), List::new());
        for n in 0..100 {
            let node = slab.push(&mut list, n);
            assert_eq!(slab.take(&mut list, node), Some(n));
        }
        assert_eq!(slab.links.len(), 1);
    }
}
