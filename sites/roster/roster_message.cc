#include <sotto/sites/roster/roster_message.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/enum_reader.h>
#include <sotto/base/text.h>

namespace sotto::sites {
namespace {

enum class RosterKind : std::uint8_t { probe = 1, answer = 2, marks = 3, entries = 4, other = 5 };

constexpr std::uint8_t kWishes = 1;
constexpr std::uint8_t kTakes = 2;
constexpr std::uint8_t kForgot = 4;
constexpr std::size_t kEntriesHeaderBytes = 12;

ByteBuffer begin_message(RosterKind kind, std::uint64_t run) {
  ByteBuffer out;
  out.write(static_cast<std::uint8_t>(kind));
  out.write(kRosterProtocol);
  out.write(run);
  return out;
}

void write_short(std::string_view text, ByteBuffer& out) {
  out.write(static_cast<std::uint8_t>(text.size()));
  out.append(std::as_bytes(std::span(text)));
}

Status broken(std::string_view what) { return {Fault::malformed, std::string(what)}; }

/// False: too long, or not printable.
bool read_short(ByteReader& in, std::size_t most, std::string& text) {
  const auto length = in.read<std::uint8_t>();
  const auto raw = in.take(length);
  text.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
  return !in.failed() && length <= most && one_line(text) == text;
}

/// False: it breaks the grammar.
bool read_entry(ByteReader& in, RosterEntry& entry) {
  if (!read_short(in, kMostRosterName, entry.name) || entry.name.empty()) {
    return false;
  }
  entry.incarnation = in.read<Incarnation>();
  entry.life = in.read<std::uint32_t>();
  entry.version = in.read<std::uint32_t>();
  const auto phase = read_enum(in, NodePhase::up, NodePhase::ended);
  if (!read_short(in, kMostRosterAddress, entry.address)) {
    return false;
  }
  const auto count = in.read<std::uint8_t>();
  if (in.failed() || entry.incarnation == 0 || !phase || count > kMostReplaced) {
    return false;
  }
  entry.phase = *phase;
  entry.replaces.resize(count);
  return in.read_into(std::span(entry.replaces));
}

Result<RosterMessage> parse_probe(ByteReader& in, bool answers) {
  RosterProbe probe{.run = in.read<std::uint64_t>(), .answers = answers};
  probe.nonce = in.read<std::uint64_t>();
  probe.digest[0] = in.read<std::uint64_t>();
  probe.digest[1] = in.read<std::uint64_t>();
  const auto flags = in.read<std::uint8_t>();
  probe.ticket = answers ? in.read<std::uint64_t>() : 0;
  const auto count = in.read<std::uint8_t>();
  if (in.failed() || flags > (kWishes | kTakes | kForgot) || count > 1) {
    return broken("a probe that cannot be");
  }
  probe.wishes = (flags & kWishes) != 0;
  probe.takes = (flags & kTakes) != 0;
  probe.forgot = (flags & kForgot) != 0;
  if ((count == 1 && !read_entry(in, probe.entry.emplace())) || !in.finished()) {
    return broken("a probe with an entry that cannot be");
  }
  return RosterMessage(std::move(probe));
}

Result<RosterMessage> parse_marks(ByteReader& in) {
  RosterMarks marks{.run = in.read<std::uint64_t>()};
  marks.ticket = in.read<std::uint64_t>();
  const auto flags = in.read<std::uint8_t>();
  marks.first = in.read<std::uint64_t>();
  marks.last = in.read<std::uint64_t>();
  const auto count = in.read<std::uint16_t>();
  if (in.failed() || flags > 1 || count > kMostMarks || marks.first > marks.last) {
    return broken("marks that cannot be");
  }
  marks.wants_yours = flags == 1;
  for (std::uint16_t k = 0; k < count; ++k) {
    RosterMark& mark = marks.marks.emplace_back();
    mark.key = in.read<std::uint64_t>();
    mark.life = in.read<std::uint32_t>();
    mark.version = in.read<std::uint32_t>();
  }
  const auto key = &RosterMark::key;
  const bool ascending =
      std::ranges::adjacent_find(marks.marks, std::greater_equal(), key) == marks.marks.end();
  const bool within = marks.marks.empty() || (marks.marks.front().key >= marks.first &&
                                              marks.marks.back().key <= marks.last);
  if (!in.finished() || !ascending || !within) {
    return broken("marks out of order");
  }
  return RosterMessage(std::move(marks));
}

Result<RosterMessage> parse_entries(ByteReader& in) {
  RosterEntries message{.run = in.read<std::uint64_t>()};
  const auto count = in.read<std::uint16_t>();
  for (std::uint16_t k = 0; k < count && !in.failed(); ++k) {
    if (!read_entry(in, message.entries.emplace_back())) {
      return broken("an entry that cannot be");
    }
  }
  return in.finished() ? Result<RosterMessage>(RosterMessage(std::move(message)))
                       : Result<RosterMessage>(broken("entries of another length"));
}

Result<RosterMessage> parse_other(ByteReader& in) {
  RosterOther other{.run = in.read<std::uint64_t>()};
  other.nonce = in.read<std::uint64_t>();
  other.up = in.read<std::uint16_t>();
  other.settings.resize(in.read<std::uint8_t>());
  if (!in.read_into(std::span(other.settings)) || !in.finished()) {
    return broken("settings of another length");
  }
  return RosterMessage(std::move(other));
}

}  // namespace

void write_entry(const RosterEntry& entry, ByteBuffer& out) {
  write_short(entry.name, out);
  out.write(entry.incarnation);
  out.write(entry.life);
  out.write(entry.version);
  out.write(static_cast<std::uint8_t>(entry.phase));
  write_short(entry.address, out);
  out.write(static_cast<std::uint8_t>(entry.replaces.size()));
  out.write_span(std::span<const Incarnation>(entry.replaces));
}

std::vector<std::byte> encode(const RosterProbe& probe) {
  ByteBuffer out = begin_message(probe.answers ? RosterKind::answer : RosterKind::probe, probe.run);
  out.write(probe.nonce);
  out.write(probe.digest[0]);
  out.write(probe.digest[1]);
  out.write(static_cast<std::uint8_t>((probe.wishes ? kWishes : 0) | (probe.takes ? kTakes : 0) |
                                      (probe.forgot ? kForgot : 0)));
  if (probe.answers) {
    out.write(probe.ticket);
  }
  out.write(static_cast<std::uint8_t>(probe.entry.has_value()));
  if (probe.entry) {
    write_entry(*probe.entry, out);
  }
  return std::move(out).take();
}

std::vector<std::byte> encode(const RosterMarks& marks) {
  check(marks.marks.size() <= kMostMarks, "marks fit into a message");
  ByteBuffer out = begin_message(RosterKind::marks, marks.run);
  out.write(marks.ticket);
  out.write(static_cast<std::uint8_t>(marks.wants_yours));
  out.write(marks.first);
  out.write(marks.last);
  out.write(static_cast<std::uint16_t>(marks.marks.size()));
  for (const RosterMark& mark : marks.marks) {
    out.write(mark.key);
    out.write(mark.life);
    out.write(mark.version);
  }
  return std::move(out).take();
}

std::vector<std::byte> encode(const RosterOther& other) {
  check(other.settings.size() <= kMostSettings, "a byte counts the settings");
  ByteBuffer out = begin_message(RosterKind::other, other.run);
  out.write(other.nonce);
  out.write(other.up);
  out.write(static_cast<std::uint8_t>(other.settings.size()));
  out.write_span(std::span<const std::uint16_t>(other.settings));
  return std::move(out).take();
}

std::vector<std::vector<std::byte>> encode_entries(std::uint64_t run,
                                                   std::span<const RosterEntry> entries) {
  std::vector<std::vector<std::byte>> messages;
  while (!entries.empty()) {
    ByteBuffer body;
    std::uint16_t count = 0;
    for (const RosterEntry& entry : entries) {
      ByteBuffer one;
      write_entry(entry, one);
      if (kEntriesHeaderBytes + body.bytes().size() + one.bytes().size() > kMostRosterBytes) {
        break;
      }
      body.append(one.bytes());
      ++count;
    }
    ByteBuffer out = begin_message(RosterKind::entries, run);
    out.write(count);
    out.append(body.bytes());
    messages.push_back(std::move(out).take());
    entries = entries.subspan(count);
  }
  return messages;
}

Result<RosterMessage> parse_roster(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto kind = in.read<std::uint8_t>();
  const auto protocol = in.read<std::uint8_t>();
  if (in.failed() || bytes.size() > kMostRosterBytes) {
    return broken("a message of a roster that is too short or too long");
  }
  if (protocol != kRosterProtocol) {
    return broken(fmt::format("a roster's protocol {}, this is {}", protocol, kRosterProtocol));
  }
  switch (static_cast<RosterKind>(kind)) {
    case RosterKind::probe:
      return parse_probe(in, false);
    case RosterKind::answer:
      return parse_probe(in, true);
    case RosterKind::marks:
      return parse_marks(in);
    case RosterKind::entries:
      return parse_entries(in);
    case RosterKind::other:
      return parse_other(in);
  }
  return broken("a message of a roster of an unknown kind");
}

}  // namespace sotto::sites
