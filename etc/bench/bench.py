#!/usr/bin/env python3
"""Strata beside nginx and Apache Traffic Server, on this machine, in one run.

    cargo build --release && sudo etc/bench/bench.py [--rounds 5] [--seconds 4]
        [--only ram|device] [--without nginx|trafficserver]... [--objects 20000]
        [--programs target/release]

Workloads (each server holds everything before the clock starts, and the
origin is stopped, so that a miss shows as an error):

  W5  a 12-byte object from RAM, keep-alive, 100 connections (wrk)
  W1  a 57,817-byte object from RAM: ab -k -c 100, ab -c 100, ab -c 1000
  W3  20,000 objects, mean about 15 KB, from the device, 500 connections (wrk):
      Strata and ATS on raw loop devices with direct I/O and a RAM cutoff of
      40 bytes, nginx as a server of files with directio

No server writes an access log. The server is pinned to core 0 and
the client to core 1; the servers take turns within a round. Printed: CPU microseconds a request (user + system of the
whole server), requests a second, and the ratio of the other's CPU to
Strata's, round by round; medians, with the least and the most.

Needs the Debian packages nginx-light, trafficserver, apache2-utils and wrk, and
root (W3's loop devices, nginx). A peer that is left out is named in the output.
"""

import argparse
import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
DEVICE_BYTES = 1 << 30
SMALL = "/1.0000000000/12"
IMAGE = "/1.0000000000/57817"
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def device_paths(objects):
    """The paths of W3: sizes as jtest spreads them over a hot set."""
    shares = [0.039, 0.098, 0.186, 0.363, 0.716, 0.834, 0.905, 0.955]
    for index in range(objects):
        share = index / objects
        within = (share * 618.034) % 1
        nth = sum(within >= bound for bound in shares) + 1
        step = 100 if share < 0.35 else 1000 if share < 0.85 else 10_000 if share < 0.99 else 100_000
        yield f"/{1 + share:.10f}/{nth * step}"


class Server:
    """One server: where it is, its port and how it is started."""

    def __init__(self, work, source, args):
        self.port, self.origin = free_port(), source.port
        self.programs = args.programs
        self.home = work / self.name
        self.home.mkdir()
        self.process = None

    def start(self, command, cwd=None):
        log = open(self.home / "out.log", "wb")
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", *map(str, command)],
            cwd=cwd or self.home,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        wait_for(f"http://127.0.0.1:{self.port}/", self)

    def stop(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def cpu_seconds(self):
        """User and system time of the whole session of processes."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == self.process.pid:
                total += int(fields[11]) + int(fields[12])
        return total / TICKS


class Strata(Server):
    name = "strata"

    def run(self, device):
        records = [
            f"CONFIG proxy.config.http.server_ports STRING {self.port}:ip-in=127.0.0.1",
            "CONFIG proxy.config.admin.listen STRING 127.0.0.1:0",
            "CONFIG proxy.config.admin.user_id STRING #-1",
            "CONFIG proxy.config.log.logging_enabled INT 0",
            "CONFIG proxy.config.cache.ram_cache.size INT 256M",
            f"CONFIG proxy.config.cache.ram_cache_cutoff INT {40 if device else 4194304}",
        ]
        (self.home / "records.config").write_text("\n".join(records) + "\n")
        (self.home / "remap.config").write_text(f"map / http://127.0.0.1:{self.origin}/\n")
        span = f"{device} tier=fast" if device else f"{self.home}/span 256M tier=fast"
        (self.home / "storage.config").write_text(span + "\n")
        self.start([self.programs / "traffic_server", "--config", self.home])


class Nginx(Server):
    """Its proxy cache never reads with O_DIRECT, whatever `directio` says (the
    cache opens its files with that off): from the device it serves files of the
    same sizes instead, and so does less than a cache does."""

    name = "nginx"

    def run(self, device):
        proxy = f"""
            proxy_pass http://127.0.0.1:{self.origin};
            proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_cache c; sendfile on;"""
        files = f"root {self.home}/files; directio 512; output_buffers 1 512k;"
        if device:
            self.write_files(device)
        (self.home / "nginx.conf").write_text(f"""
            daemon off; user root; worker_processes 1; pid {self.home}/pid;
            error_log {self.home}/error.log;
            events {{ worker_connections 8192; }}
            http {{
              access_log off; tcp_nodelay on; keepalive_requests 100000000;
              proxy_cache_path {self.home}/cache levels=1:2 keys_zone=c:64m max_size=2g inactive=1d;
              server {{
                listen 127.0.0.1:{self.port} backlog=4096;
                location / {{ {files if device else proxy} }}
              }}
            }}""")
        self.start(["nginx", "-c", self.home / "nginx.conf", "-p", self.home])

    def write_files(self, paths):
        for path in paths:
            file = self.home / f"files{path}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(bytes(int(file.name)))
        os.sync()


class TrafficServer(Server):
    name = "trafficserver"

    def run(self, device):
        for name in ("etc", "var", "run", "log", "cache"):
            (self.home / name).mkdir()
        places = {
            "prefix": self.home, "exec_prefix": "/usr", "bindir": "/usr/bin",
            "sbindir": "/usr/sbin", "sysconfdir": self.home / "etc",
            "datadir": self.home / "var", "includedir": "/usr/include",
            "libdir": "/usr/lib/trafficserver",
            "libexecdir": "/usr/lib/trafficserver/modules",
            "localstatedir": self.home / "run", "runtimedir": self.home / "run",
            "logdir": self.home / "log", "cachedir": self.home / "cache",
        }
        runroot = "".join(f"{key}: {value}\n" for key, value in places.items())
        (self.home / "runroot.yaml").write_text(runroot)
        etc = self.home / "etc"
        shutil.copy("/etc/trafficserver/ip_allow.yaml", etc)
        records = [
            f"CONFIG proxy.config.http.server_ports STRING {self.port}:ip-in=127.0.0.1",
            "CONFIG proxy.config.admin.user_id STRING #-1",
            "CONFIG proxy.config.exec_thread.autoconfig INT 0",
            "CONFIG proxy.config.exec_thread.limit INT 1",
            "CONFIG proxy.config.log.logging_enabled INT 0",
            "CONFIG proxy.config.cache.ram_cache.size INT 256M",
            "CONFIG proxy.config.cache.ram_cache.use_seen_filter INT 0",
            f"CONFIG proxy.config.cache.ram_cache_cutoff INT {40 if device else 4194304}",
            "CONFIG proxy.config.net.connections_throttle INT 9000",
        ]
        (etc / "records.config").write_text("\n".join(records) + "\n")
        (etc / "remap.config").write_text(f"map / http://127.0.0.1:{self.origin}/\n")
        (etc / "storage.config").write_text(f"{device}\n" if device else f"{self.home}/cache 256M\n")
        for name in ("plugin", "cache", "hosting", "volume", "parent"):
            (etc / f"{name}.config").touch()
        self.start(["traffic_server", f"--run-root={self.home}"], cwd="/")


def wait_for(url, server):
    for _ in range(150):
        if server.process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=1).read()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{server.name} did not start; see {server.home}/out.log")


def warm(server, paths):
    """Every path three times: stored, read from the device, held in RAM."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for _ in range(3):
        for path in paths:
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                sys.exit(f"{server.name} answers {response.status} to {path}")
    connection.close()
    time.sleep(3)


def client(command):
    done = subprocess.run(["taskset", "-c", "1", *map(str, command)], capture_output=True, text=True)
    return done.stdout + done.stderr


def wrk(server, connections, seconds, path, script=None):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    if script:
        command += ["-s", script]
    out = client(command + [f"http://127.0.0.1:{server.port}{path}"])
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", out)
    if bad or (errors and any(map(int, errors.groups()))):
        print(f"    {server.name}: {(bad or errors).group(0)}")
    return int(re.search(r"(\d+) requests in", out).group(1))


def ab(server, connections, seconds, keep_alive):
    command = ["ab", "-q", "-t", seconds, "-n", 10_000_000, "-c", connections]
    if keep_alive:
        command.append("-k")
    out = client(command + [f"http://127.0.0.1:{server.port}{IMAGE}"])
    failed = int(re.search(r"Failed requests:\s+(\d+)", out).group(1))
    bad = re.search(r"Non-2xx responses:\s+(\d+)", out)
    if failed or bad:
        print(f"    {server.name}: {failed} failed, {bad.group(0) if bad else 'none non-2xx'}")
    return int(re.search(r"Complete requests:\s+(\d+)", out).group(1))


def measure(server, load):
    cpu, start = server.cpu_seconds(), time.monotonic()
    requests = load(server)
    elapsed = time.monotonic() - start
    return (server.cpu_seconds() - cpu) / requests * 1e6, requests / elapsed


def compare(title, servers, load, rounds):
    """Servers in turn, `rounds` times; the table of medians and ratios."""
    results = {server.name: [] for server in servers}
    for _ in range(rounds):
        for server in servers:
            results[server.name].append(measure(server, load))
    print(f"\n{title}")
    own = [cpu for cpu, _ in results[servers[0].name]]
    for name, rows in results.items():
        cpus = [cpu for cpu, _ in rows]
        rate = statistics.median(rate for _, rate in rows)
        ratio = statistics.median(cpu / base for cpu, base in zip(cpus, own))
        print(
            f"  {name:14} {statistics.median(cpus):7.1f} us/request "
            f"({min(cpus):.1f}-{max(cpus):.1f})  {rate:9.0f} requests/s  {ratio:5.2f} x Strata"
        )
    sys.stdout.flush()


def loop_device(path, undo):
    with open(path, "wb") as file:
        file.truncate(DEVICE_BYTES)
    # Registered before it is attached, and found by its file: a signal may come
    # between the two.
    undo.callback(detach, path)
    return subprocess.check_output(["losetup", "--find", "--show", "--direct-io=on", path], text=True).strip()


def detach(path):
    found = subprocess.run(["losetup", "--noheadings", "--output", "NAME", "--associated", path], capture_output=True, text=True)
    for device in found.stdout.split():
        subprocess.run(["losetup", "--detach", device], check=False)


def wrk_script(work, paths):
    script = work / "paths.lua"
    lines = ",\n".join(f'"{path}"' for path in paths)
    script.write_text(
        f"local paths = {{{lines}}}\nmath.randomseed(1)\n"
        "request = function() return wrk.format('GET', paths[math.random(#paths)]) end\n"
    )
    return script


def start_all(work, devices, args, source, undo):
    peers = [peer for peer in (Nginx, TrafficServer) if peer.name not in args.without]
    servers = [each(work, source, args) for each in (Strata, *peers)]
    for server in servers:
        undo.callback(server.stop)
        server.run(devices.get(server.name))
    return servers


class Origin:
    """jtest's, which serves any document."""

    def __init__(self, args, undo):
        self.port = free_port()
        command = [args.programs / "jtest", "-Y", "-S", "127.0.0.1", "-s", str(self.port), "-j", "0", "-i", "3600"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        self.stop = process.terminate
        undo.callback(process.wait)
        undo.callback(process.kill)


def ram_group(work, args, undo):
    source = Origin(args, undo)
    servers = start_all(work, {}, args, source, undo)
    for server in servers:
        warm(server, [SMALL, IMAGE])
    source.stop()
    compare("W5  12 bytes from RAM, keep-alive, c100", servers, lambda s: wrk(s, 100, args.seconds, SMALL), args.rounds)
    for title, connections, keep in (("-k -c 100", 100, True), ("-c 100", 100, False), ("-c 1000", 1000, False)):
        compare(f"W1  57,817 bytes from RAM, ab {title}", servers, lambda s: ab(s, connections, args.seconds, keep), args.rounds)


def device_group(work, args, undo):
    source, paths = Origin(args, undo), list(device_paths(args.objects))
    raw = [name for name in ("strata", "trafficserver") if name not in args.without]
    devices = {name: loop_device(work / f"{name}.img", undo) for name in raw}
    servers = start_all(work, {**devices, "nginx": paths}, args, source, undo)
    for server in servers:
        warm(server, paths)
    source.stop()
    script = wrk_script(work, paths)
    compare(
        f"W3  {args.objects} objects from the device, c500",
        servers, lambda s: wrk(s, 500, args.seconds, "/", script), args.rounds,
    )


def interrupted(number, _frame):
    """Ends the run by an exception, so that what it started is undone; a second
    signal must not stop that."""
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--only", choices=("ram", "device"))
    parser.add_argument("--without", choices=("nginx", "trafficserver"), action="append", default=[], help="leave a peer out")
    parser.add_argument("--objects", type=int, default=20_000, help="of W3")
    parser.add_argument("--programs", type=Path, default=TARGET, help="directory of Strata's programs")
    args = parser.parse_args()
    args.programs = args.programs.resolve()
    if args.without:
        print("left out:", ", ".join(args.without), flush=True)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, interrupted)
    for name, group in (("ram", ram_group), ("device", device_group)):
        if args.only in (None, name):
            with contextlib.ExitStack() as undo:
                work = undo.enter_context(tempfile.TemporaryDirectory(prefix="strata-bench-"))
                group(Path(work), args, undo)


if __name__ == "__main__":
    main()
