//! Floor 4: the control socket, reload and the admin listener.

mod accept;
pub mod admin;
pub mod client;
pub mod control;
pub mod files;
pub mod life;
pub mod load;
pub mod paths;
pub mod persist;
pub mod rpc;
pub mod settings;
pub mod socket;
pub mod terminal;
pub mod verify;
pub mod whereabouts;
