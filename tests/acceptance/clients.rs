//! Real clients, and nginx behind them.

use crate::peers::Nginx;
use crate::site::{Site, run, stdout};
use std::fs;

const IMAGE_BYTES: usize = 57_817;

fn in_front_of(nginx: &Nginx) -> Site {
    let remap = format!("map / http://127.0.0.1:{}/\n", nginx.port);
    let mut site = Site::new("", &remap, "var/cache.span 64M tier=fast\n");
    site.start();
    site
}

/// `ab`'s own verdict on a run.
fn ab(site: &Site, args: &[&str]) {
    let url = site.url("/image");
    let mut all = vec!["-q"];
    all.extend(args);
    all.push(&url);
    let text = stdout("ab", &all);
    assert!(text.contains("Failed requests:        0"), "{text}");
    assert!(!text.contains("Non-2xx"), "{text}");
    assert!(
        text.contains("Document Length:        57817 bytes"),
        "{text}"
    );
}

#[test]
fn curl_wget_python_and_wrk_get_the_image_whole() {
    let nginx = Nginx::start(IMAGE_BYTES, "expires 1h;");
    let site = in_front_of(&nginx);
    let url = site.url("/image");
    let whole: Vec<u8> = (0..=255).cycle().take(IMAGE_BYTES).collect();
    for _ in 0..2 {
        assert_eq!(run("curl", &["-sS", "--fail", &url]).stdout, whole);
        assert_eq!(run("wget", &["-q", "-O", "-", &url]).stdout, whole);
        let python = format!(
            "import http.client,sys\nc=http.client.HTTPConnection('127.0.0.1',{})\n\
             for _ in range(2):\n c.request('GET','/image'); b=c.getresponse().read()\n\
             sys.stdout.buffer.write(b)",
            site.port
        );
        assert_eq!(run("python3", &["-c", &python]).stdout, whole);
    }
    let text = stdout("wrk", &["-t1", "-c20", "-d1s", &url]);
    assert!(text.contains("requests in"), "{text}");
    assert!(
        !text.contains("Non-2xx") && !text.contains("Socket errors"),
        "{text}"
    );
    assert_eq!(nginx.requests(), ["GET 200"]);
}

#[test]
fn curl_reads_ranges_and_resumes_and_each_byte_leaves_the_origin_once() {
    const LEN: usize = 5_000_000;
    let film: Vec<u8> = (0..1_250_000_u32).flat_map(u32::to_le_bytes).collect();
    let nginx = Nginx::start(IMAGE_BYTES, "expires 1h;");
    nginx.put("film", &film);
    let site = in_front_of(&nginx);
    let url = site.url("/film");
    for (range, bytes) in [
        ("0-0", 0..1),
        ("4999990-", 4_999_990..LEN),
        ("-17", LEN - 17..LEN),
        ("1048570-1048580", 1_048_570..1_048_581),
        ("1500000-3500000", 1_500_000..3_500_001),
        ("1500000-3500000", 1_500_000..3_500_001),
    ] {
        let got = run("curl", &["-sS", "--fail", "-r", range, &url]).stdout;
        assert!(got == film[bytes], "{range}");
    }
    let begun = site.path("film");
    fs::write(&begun, &film[..1_234_567]).unwrap();
    let file = begun.to_str().unwrap();
    stdout("curl", &["-sS", "--fail", "-C", "-", "-o", file, &url]);
    assert!(fs::read(&begun).unwrap() == film);
    assert!(run("curl", &["-sS", "--fail", &url]).stdout == film);
    assert_eq!(nginx.sent(), 5_000_000);
}

#[test]
fn ab_with_expires_makes_one_origin_request() {
    let nginx = Nginx::start(IMAGE_BYTES, "expires 1h;");
    let site = in_front_of(&nginx);
    ab(&site, &["-k", "-c", "100", "-n", "3000"]);
    ab(&site, &["-c", "1000", "-n", "3000"]);
    assert_eq!(nginx.requests(), ["GET 200"]);
}

#[test]
fn ab_without_expires_and_an_old_file_makes_one_origin_request() {
    let nginx = Nginx::start(IMAGE_BYTES, "");
    nginx.date_image("365 days ago");
    let site = in_front_of(&nginx);
    ab(&site, &["-k", "-c", "100", "-n", "3000"]);
    ab(&site, &["-c", "1000", "-n", "3000"]);
    assert_eq!(nginx.requests(), ["GET 200"]);
}

#[test]
fn a_file_just_made_is_revalidated_each_time_and_said_so() {
    let nginx = Nginx::start(IMAGE_BYTES, "");
    // Younger than any Date by which it will be judged, however slow the run.
    nginx.date_image("1 hour");
    let mut site = in_front_of(&nginx);
    for _ in 0..5 {
        let head = stdout(
            "curl",
            &["-sS", "-o", "/dev/null", "-D", "-", &site.url("/image")],
        );
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    let requests = nginx.requests();
    assert_eq!(requests[0], "GET 200");
    assert_eq!(requests[1..], ["GET 304"; 4], "{requests:?}");
    assert_eq!(
        site.metric("proxy.process.http.cache_hit_revalidated"),
        4,
        "said in the metrics"
    );
    assert!(site.stop().success());
    let log = fs::read_to_string(site.path("var/log/strata.log")).unwrap();
    let mut outcomes: Vec<_> = log
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    // Each event thread hands over its own lines: they come in any order.
    outcomes.sort_unstable();
    let expected = [
        "hit_revalidated",
        "hit_revalidated",
        "hit_revalidated",
        "hit_revalidated",
        "miss_cold",
    ];
    assert_eq!(outcomes, expected, "{log}");
}
