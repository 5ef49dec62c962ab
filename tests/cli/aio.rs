//! How spans are read: as the record says, and as the log says.

use crate::support::{Config, Server, get};
use crate::until::until;

fn config(mode: &str) -> Config {
    let config = Config::new(&format!(
        "CONFIG proxy.config.aio.mode STRING {mode}\n\
         CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n"
    ));
    config.write(
        "remap.config",
        "map http://a.example/ http://generator.invalid/demo/ @plugin=generator.so\n",
    );
    config.write("storage.config", "span 64M tier=fast\n");
    config
}

/// A server whose span has been read.
fn start(config: &Config) -> Server {
    let server = config.start();
    config.spans_read();
    server
}

/// Asks for one object of 10,000 bytes: its body, as text.
fn get_object(server: &Server) -> String {
    let answer = get(server.port(), "/10000/1", "a.example");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}

/// The line that says how spans are read.
fn choice(server: &Server) -> &str {
    let mut lines = server.started().lines();
    lines.find(|line| line.contains("disk I/O")).unwrap()
}

fn has_ring(server: &Server) -> bool {
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
    let names = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    let mut names = names.map(|name| name.to_string_lossy().into_owned());
    names.any(|name| name.contains("io_uring"))
}

/// Stores an object, starts anew, and reads it from the span: the server that
/// did.
fn serving_from_the_span(config: &Config) -> Server {
    let first = start(config);
    let stored = get_object(&first);
    first.signal("-TERM");
    assert_eq!(first.ended().0, 0);
    let server = start(config);
    assert!(get_object(&server) == stored && stored.len() >= 10_000);
    let hits = config.line(&["-r", "strata.tier.fast.hits"]).ok();
    assert_eq!(hits, "1\n", "{}", server.started());
    server
}

#[test]
fn aio_mode_thread_serves_from_the_span_without_a_ring_and_says_so() {
    let config = config("thread");
    let server = serving_from_the_span(&config);
    let said = choice(&server);
    assert!(said.contains("mode=Thread backend=Threads"), "{said}");
    assert!(!has_ring(&server));
}

#[test]
fn aio_mode_io_uring_serves_from_the_span_by_rings_or_says_why_not() {
    let config = config("io_uring");
    let server = serving_from_the_span(&config);
    let said = choice(&server);
    if said.contains("mode=IoUring backend=Rings") {
        until("a ring", || has_ring(&server));
    } else {
        // This system gives none.
        assert!(said.contains("backend=Threads"), "{said}");
        assert!(
            said.contains("WARN") && said.contains("io_uring_setup"),
            "{said}"
        );
    }
}
