//! A client that sends bytes as they are and reads responses strictly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a client waits before a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// A response as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Status line and field lines, the empty line included.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The values of a field, in order.
    pub(crate) fn fields(&self, name: &str) -> Vec<&str> {
        super::fields(&self.head, name)
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection to the proxy.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    /// This end's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.reader.get_ref().local_addr().unwrap()
    }

    /// Sends bytes; a proxy that closed already is found out by reading.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        drop(self.reader.get_mut().write_all(bytes.as_ref()));
        self
    }

    /// Sends and reads the response to a request that isn't HEAD.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Response {
        self.send(request).response().expect("a response")
    }

    /// The next response, its body by its framing; none at the connection's
    /// end.
    ///
    /// # Errors
    /// What was read of a response that broke off.
    pub(crate) fn response(&mut self) -> Result<Response, String> {
        let mut response = self.head()?;
        let no_body = response.status < 200 || [204, 304].contains(&response.status);
        if !no_body {
            response.body = self.body(&response.head)?;
        }
        Ok(response)
    }

    /// The next response's head alone, as HEAD gives it.
    ///
    /// # Errors
    /// What was read of a head that broke off.
    pub(crate) fn head(&mut self) -> Result<Response, String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match self.reader.read_line(&mut head) {
                Ok(read) if read > 0 => {}
                end => return Err(format!("{end:?} after {head:?}")),
            }
        }
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(Response {
            status: status.ok_or_else(|| head.clone())?,
            head,
            body: Vec::new(),
        })
    }

    fn body(&mut self, head: &str) -> Result<Vec<u8>, String> {
        if super::fields(head, "transfer-encoding") == ["chunked"] {
            let body = super::read_chunked(&mut self.reader);
            return body.ok_or_else(|| "a chunked body that broke off".to_owned());
        }
        let mut body = Vec::new();
        let length = super::fields(head, "content-length");
        let read = match length.first() {
            Some(text) => {
                body.resize(text.parse().map_err(|_| head.to_owned())?, 0);
                self.reader.read_exact(&mut body).map(|()| 0)
            }
            None => self.reader.read_to_end(&mut body),
        };
        read.map(|_| body).map_err(|error| error.to_string())
    }

    /// Whether the proxy ends the connection without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.reader.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Everything up to the connection's end, and whether it ended in order.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        let end = self.reader.read_to_end(&mut rest);
        (rest, end.is_ok())
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self) -> &mut Self {
        drop(self.reader.get_mut().shutdown(Shutdown::Write));
        self
    }
    /// The next bytes of a body, exactly so many.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Leaves by a reset, as a client that is killed does.
    pub(crate) fn reset(self) {
        let stream = self.reader.into_inner();
        let socket = socket2::SockRef::from(&stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Whether a first byte comes within `patience`.
    pub(crate) fn has_answer_within(&mut self, patience: Duration) -> bool {
        let stream = self.reader.get_ref();
        stream.set_read_timeout(Some(patience)).unwrap();
        let came = stream.peek(&mut [0]).is_ok();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        came
    }
}
