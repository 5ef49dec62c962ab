//! volume.config: `volume=N scheme=http size=MEGABYTES|PERCENT%
//! [ramcache=true|false]`, a volume a line, in any order of the words.
//!
//! Sizes are shares of the spans that have no `volume=` of their own in
//! storage.config. Any fault refuses the file.

use super::fault::{Fault, once, volume_number};
use super::lines::{Line, Word, decode, lines};
use super::nearest::did_you_mean;
use super::place::{Place, shortened};
use super::{ConfigError, Findings};

/// The least size of a volume, in megabytes: what a stripe takes.
const MEGABYTES_MIN: u64 = 32;
/// The most: more than all disks of a machine.
const MEGABYTES_MAX: u64 = 1 << 40;

/// Options of later versions of ATS, which have no effect here.
const WITHOUT_EFFECT: [&str; 4] = [
    "avg_obj_size",
    "fragment_size",
    "ram_cache_size",
    "ram_cache_cutoff",
];

/// How large a volume is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeSize {
    /// Of the spans that are shared, 1 to 100.
    Percent(u8),
    /// Megabytes of 1024 × 1024 bytes.
    Megabytes(u64),
}

/// One volume, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeLine {
    /// 1 to 255.
    pub number: u8,
    /// How large it is to be.
    pub size: VolumeSize,
    /// Whether its objects may enter the RAM cache.
    pub ram_cache: bool,
    /// Where its number stands.
    pub place: Place,
}

/// The configured volumes, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFile {
    /// In the order of the lines; none is one volume over all spans.
    pub volumes: Vec<VolumeLine>,
}

impl VolumeFile {
    /// Reads a file of this name.
    #[must_use]
    pub fn parse(file: &str, bytes: &[u8]) -> (Self, Findings) {
        let mut volumes = Self::default();
        let mut found = Findings::default();
        match decode(file, bytes) {
            Ok(text) => {
                for line in lines(file, text).filter(|line| !line.is_blank()) {
                    volumes.add(&line, &mut found);
                }
            }
            Err(error) => found.errors.push(error),
        }
        (volumes, found)
    }

    fn add(&mut self, line: &Line<'_>, found: &mut Findings) {
        let before = found.errors.len();
        let volume = Words::read(line, found).volume(line, found);
        let Some(volume) = volume.filter(|_| found.errors.len() == before) else {
            return;
        };
        let same = self.volumes.iter().find(|v| v.number == volume.number);
        found.errors.extend(same.map(|first| twice(&volume, first)));
        self.volumes.push(volume);
        let percent = self.volumes.iter().map(|volume| volume.size.percent());
        let percent: u32 = percent.sum();
        if percent > 100 {
            found.errors.push(too_much(line, percent));
        }
    }
}

impl VolumeSize {
    fn percent(self) -> u32 {
        match self {
            Self::Percent(percent) => percent.into(),
            Self::Megabytes(_) => 0,
        }
    }
}

fn twice(volume: &VolumeLine, first: &VolumeLine) -> ConfigError {
    let Place { line, file, .. } = &first.place;
    let what = format!("already in line {line} of {file}");
    let mut error = volume
        .place
        .error(&format!("volume={}", volume.number), what);
    error.help = Some("each volume has one line".into());
    error
}

fn too_much(line: &Line<'_>, percent: u32) -> ConfigError {
    let what = format!("the volumes up to here take {percent} %, more than there is");
    let mut error = line.place(1).error("", what);
    error.help = Some("all sizes in % come to 100 at most".into());
    error
}

/// What the words of a line say.
#[derive(Default)]
struct Words {
    number: Option<(u8, Place)>,
    scheme: Option<()>,
    size: Option<VolumeSize>,
    ram_cache: Option<bool>,
}

impl Words {
    fn read(line: &Line<'_>, found: &mut Findings) -> Self {
        let mut words = Self::default();
        for word in line.words().take_while(|word| !word.text.starts_with('#')) {
            let name = word.text.split('=').next().unwrap_or_default();
            if WITHOUT_EFFECT.contains(&name) {
                let what = "this option of ATS 10.2 has no effect here";
                let place = line.place(word.column);
                found.warnings.push(place.error(word.text, what));
            } else if let Err(fault) = words.take(line, &word) {
                found.errors.push(fault.of(line, &word));
            }
        }
        words
    }

    fn take(&mut self, line: &Line<'_>, word: &Word<'_>) -> Result<(), Fault> {
        match word.text.split_once('=') {
            Some(("volume", number)) => {
                let number = (volume_number(number)?, line.place(word.column));
                once("volume=", &mut self.number, number)
            }
            Some(("scheme", name)) => once("scheme=", &mut self.scheme, scheme(name)?),
            Some(("size", text)) => once("size=", &mut self.size, size(text)?),
            Some(("ramcache", text)) => once("ramcache=", &mut self.ram_cache, flag(text)?),
            _ => Err(unknown(word.text)),
        }
    }

    /// The volume; faults of its line are told before what is missing.
    fn volume(self, line: &Line<'_>, found: &mut Findings) -> Option<VolumeLine> {
        if let (Some((number, place)), Some(size)) = (self.number, self.size) {
            return Some(VolumeLine {
                number,
                size,
                ram_cache: self.ram_cache.unwrap_or(true),
                place,
            });
        }
        let of_line = |error: &ConfigError| error.line == line.number;
        if !found.errors.iter().any(of_line) {
            let mut error = line.place(1).error("", "a volume without number or size");
            error.help = Some("volume=1 scheme=http size=50%".into());
            found.errors.push(error);
        }
        None
    }
}

fn scheme(name: &str) -> Result<(), Fault> {
    match name {
        "http" => Ok(()),
        _ => Err(Fault::new("unknown scheme", "only scheme=http is stored")),
    }
}

fn size(text: &str) -> Result<VolumeSize, Fault> {
    let help = "give megabytes, such as size=4096, or a share, such as size=25%";
    let (digits, is_percent) = match text.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_number);
    match (number, is_percent) {
        (Some(percent @ 1..=100), true) => {
            let percent = u8::try_from(percent).map_err(|_| Fault::new("not a share", help))?;
            Ok(VolumeSize::Percent(percent))
        }
        (Some(_), true) => Err(Fault::new("a share is 1% to 100%", help)),
        (Some(size @ MEGABYTES_MIN..=MEGABYTES_MAX), false) => Ok(VolumeSize::Megabytes(size)),
        (Some(size), false) if size < MEGABYTES_MIN => {
            let what = format!("{size} megabytes are too few for a volume");
            Err(Fault::new(what, "at least size=32"))
        }
        (Some(_) | None, _) => Err(Fault::new("not a size", help)),
    }
}

fn flag(text: &str) -> Result<bool, Fault> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Fault {
            what: format!("\"{}\" is neither true nor false", shortened(text)),
            help: did_you_mean(text, ["true", "false"]),
        }),
    }
}

fn unknown(word: &str) -> Fault {
    let key = word.split('=').next().unwrap_or(word);
    let near = did_you_mean(key, ["volume", "scheme", "size", "ramcache"]);
    Fault {
        what: "unknown option".into(),
        help: near.or_else(|| Some("one of volume=, scheme=, size=, ramcache=".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (VolumeFile, Findings) {
        VolumeFile::parse("volume.config", text.as_bytes())
    }

    fn errors(text: &str) -> Vec<String> {
        let (_, found) = parse(text);
        found.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn volumes_have_a_number_a_size_and_perhaps_no_ram() {
        let text = "# all\nvolume=1 scheme=http size=25%\n  size=512 ramcache=false volume=255 scheme=http # ssd\r\n";
        let (file, found) = parse(text);
        assert_eq!(found, Findings::default());
        let volumes: Vec<_> = file
            .volumes
            .iter()
            .map(|v| (v.number, v.size, v.ram_cache, v.place.to_string()))
            .collect();
        assert_eq!(
            volumes,
            [
                (
                    1,
                    VolumeSize::Percent(25),
                    true,
                    "volume.config:2:1".to_owned()
                ),
                (
                    255,
                    VolumeSize::Megabytes(512),
                    false,
                    "volume.config:3:27".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn a_file_without_volumes_is_no_fault() {
        for text in ["", "# volume=1\n", "\u{feff}\r\n"] {
            assert_eq!(parse(text), (VolumeFile::default(), Findings::default()));
        }
    }

    #[test]
    fn every_fault_is_named_with_its_place_and_cure() {
        assert_eq!(
            errors(
                "volume=0 scheme=http size=10%\nvolume=1 scheme=rtsp size=0%\nvolume=2 size=31\n\
                 volume=3 size=10M\nvolume=4 size=10% ramcache=flase\nvolmue=5 size=10%\n\
                 volume=6\nvolume=7 size=10% size=20%\nvolume=8 size=+5%\nvolume=9 size=101%"
            ),
            [
                "volume.config:1:1: no number of a volume (at \"volume=0\"); volumes are 1 to 255",
                "volume.config:2:10: unknown scheme (at \"scheme=rtsp\"); only scheme=http is stored",
                "volume.config:2:22: a share is 1% to 100% (at \"size=0%\"); give megabytes, such as size=4096, or a share, such as size=25%",
                "volume.config:3:10: 31 megabytes are too few for a volume (at \"size=31\"); at least size=32",
                "volume.config:4:10: not a size (at \"size=10M\"); give megabytes, such as size=4096, or a share, such as size=25%",
                "volume.config:5:19: \"flase\" is neither true nor false (at \"ramcache=flase\"); did you mean false?",
                "volume.config:6:1: unknown option (at \"volmue=5\"); did you mean volume?",
                "volume.config:7:1: a volume without number or size; volume=1 scheme=http size=50%",
                "volume.config:8:19: size= is given twice (at \"size=20%\"); give it once",
                "volume.config:9:10: not a size (at \"size=+5%\"); give megabytes, such as size=4096, or a share, such as size=25%",
                "volume.config:10:10: a share is 1% to 100% (at \"size=101%\"); give megabytes, such as size=4096, or a share, such as size=25%",
            ]
        );
    }

    #[test]
    fn a_volume_twice_and_shares_above_the_whole_are_errors() {
        let twice = errors("volume=1 size=10%\nvolume=1 size=64");
        assert_eq!(
            twice,
            [
                "volume.config:2:1: already in line 1 of volume.config (at \"volume=1\"); each volume has one line"
            ]
        );
        let much = errors("volume=1 size=60%\nvolume=2 size=40%\nvolume=3 size=1%");
        assert_eq!(
            much,
            [
                "volume.config:3:1: the volumes up to here take 101 %, more than there is; all sizes in % come to 100 at most"
            ]
        );
    }

    #[test]
    fn options_of_later_versions_are_warned_of_by_name() {
        let (file, found) = parse("volume=1 size=10% avg_obj_size=8000");
        assert_eq!((file.volumes.len(), found.errors.len()), (1, 0));
        let warning = found.warnings[0].to_string();
        assert!(
            warning.starts_with("volume.config:1:19: ") && warning.contains("avg_obj_size"),
            "{warning}"
        );
    }
}
