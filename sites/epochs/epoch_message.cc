#include <sotto/sites/epochs/epoch_message.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/enum_reader.h>
#include <sotto/base/text.h>

namespace sotto::sites {
namespace {

Status ill_formed(std::string_view what) { return {Fault::malformed, std::string(what)}; }

/// Reads a message of which the bodies may keep a part.
class MessageReader : public ByteReader {
 public:
  explicit MessageReader(const SharedBytes& message) : ByteReader(message), message_(message) {}
  SharedBytes take_rest() { return message_.part(take(remaining())); }

 private:
  const SharedBytes& message_;
};

// -- what several messages have -------------------------------------------------------------------

void write_pair(const std::array<std::uint64_t, 2>& pair, ByteBuffer& out) {
  out.write(pair[0]);
  out.write(pair[1]);
}

std::array<std::uint64_t, 2> read_pair(ByteReader& in) {
  const auto first = in.read<std::uint64_t>();
  return {first, in.read<std::uint64_t>()};
}

/// False: neither 0 nor 1.
bool read_flag(ByteReader& in, bool& flag) {
  const auto value = in.read<std::uint8_t>();
  flag = value == 1;
  return !in.failed() && value <= 1;
}

void write_node(const EpochNode& node, ByteBuffer& out) {
  out.write(static_cast<std::uint8_t>(node.name.size()));
  out.append(std::as_bytes(std::span(node.name)));
  out.write(node.incarnation);
  out.write(node.stay);
}

bool read_node(ByteReader& in, EpochNode& node) {
  const auto length = in.read<std::uint8_t>();
  const auto raw = in.take(length);
  node.name.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
  node.incarnation = in.read<Incarnation>();
  node.stay = in.read<std::uint32_t>();
  return !in.failed() && length <= kMostEpochName && one_line(node.name) == node.name;
}

void write_nodes(const std::vector<EpochNode>& nodes, ByteBuffer& out) {
  out.write(static_cast<std::uint16_t>(nodes.size()));
  for (const EpochNode& node : nodes) {
    write_node(node, out);
  }
}

/// Different nodes with names.
bool read_nodes(ByteReader& in, std::vector<EpochNode>& nodes) {
  const auto count = in.read<std::uint16_t>();
  if (in.failed() || count > kMostEpochMembers) {
    return false;
  }
  nodes.resize(count);
  for (EpochNode& node : nodes) {
    if (!read_node(in, node) || node.name.empty()) {
      return false;
    }
  }
  std::vector<EpochNode> sorted = nodes;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end();
}

void write_claim(const ModelClaim& claim, ByteBuffer& out) {
  out.write(claim.step);
  write_pair(claim.digest, out);
}

bool read_claim(ByteReader& in, ModelClaim& claim) {
  claim.step = in.read<Round>();
  claim.digest = read_pair(in);
  return !in.failed() && claim.step <= kMostCount;
}

void write_settings(const StepSettings& settings, ByteBuffer& out) {
  out.write(settings.learning_rate);
  out.write(settings.of);
  out.write(settings.further);
}

bool read_settings(ByteReader& in, StepSettings& settings) {
  settings.learning_rate = in.read<double>();
  settings.of = in.read<Round>();
  settings.further = in.read<std::uint64_t>();
  return !in.failed() && settings.of <= kMostCount;
}

void write_value(const EpochValue& value, ByteBuffer& out) {
  write_nodes(value.members, out);
  out.write(value.base);
  out.write(static_cast<std::uint8_t>(value.carry.has_value()));
  write_pair(value.carry.value_or(EpochDigest{}), out);
  write_pair(value.history, out);
}

bool read_value(ByteReader& in, EpochValue& value) {
  if (!read_nodes(in, value.members)) {
    return false;
  }
  value.base = in.read<Round>();
  bool carries = false;
  if (value.base > kMostCount || !read_flag(in, carries)) {
    return false;
  }
  const EpochDigest carry = read_pair(in);
  value.carry = carries ? std::optional(carry) : std::nullopt;
  value.history = read_pair(in);
  return !in.failed();
}

/// A value, and who is put out by it; nobody is in a founding, and its votes lie in files.
void write_end(const EpochValue& value, ByteBuffer& out) {
  write_value(value, out);
  write_nodes(value.unequal, out);
}
bool read_end(ByteReader& in, EpochValue& value) {
  return read_value(in, value) && read_nodes(in, value.unequal);
}

void write_promise(const EpochPromise& promise, ByteBuffer& out) {
  write_node(promise.by, out);
  out.write(promise.step);
  out.write(static_cast<std::uint8_t>(promise.mean.has_value()));
  write_pair(promise.mean.value_or(EpochDigest{}), out);
  out.write(static_cast<std::uint8_t>(promise.leaving));
  out.write(promise.unequal);
  out.write(static_cast<std::uint8_t>(promise.accepted.has_value()));
  if (promise.accepted) {
    write_ballot(promise.accepted->ballot, out);
    write_end(promise.accepted->value, out);
  }
}

bool read_promise(ByteReader& in, EpochPromise& promise) {
  if (!read_node(in, promise.by)) {
    return false;
  }
  promise.step = in.read<Round>();
  bool has_mean = false;
  if (promise.step > kMostCount || !read_flag(in, has_mean)) {
    return false;
  }
  const EpochDigest mean = read_pair(in);
  promise.mean = has_mean ? std::optional(mean) : std::nullopt;
  if (!read_flag(in, promise.leaving)) {
    return false;
  }
  promise.unequal = in.read<std::uint64_t>();
  bool accepted = false;
  if (!read_flag(in, accepted)) {
    return false;
  }
  if (!accepted) {
    return true;
  }
  AcceptedValue& value = promise.accepted.emplace();
  return read_ballot(in, value.ballot) && read_end(in, value.value);
}

void write_step(const std::optional<Round>& step, ByteBuffer& out) {
  out.write(static_cast<std::uint8_t>(step.has_value()));
  out.write(step.value_or(0));
}

bool read_step(ByteReader& in, std::optional<Round>& step) {
  bool there = false;
  if (!read_flag(in, there)) {
    return false;
  }
  const auto value = in.read<Round>();
  step = there ? std::optional(value) : std::nullopt;
  return !in.failed() && value <= kMostCount;
}

// -- bodies ---------------------------------------------------------------------------------------

void write_body(const PartMessage& part, ByteBuffer& out) {
  out.write(static_cast<std::uint8_t>(part.standing));
  out.write(part.step);
  write_pair(part.digest, out);
  out.write(part.parts);
  out.write(part.part);
  out.write(static_cast<std::uint16_t>(part.who.size()));
  out.write_span(std::span<const std::uint16_t>(part.who));
}

bool read_body(MessageReader& in, PartMessage& part) {
  using Standing = PartMessage::Standing;
  const auto standing = read_enum(in, Standing::made, Standing::held);
  part.step = in.read<Round>();
  part.digest = read_pair(in);
  part.parts = in.read<std::uint16_t>();
  part.part = in.read<std::uint16_t>();
  const auto number = in.read<std::uint16_t>();
  if (in.failed() || !standing || part.step > kMostCount || part.parts > kMostEpochMembers ||
      part.part >= part.parts || number == 0 || number > part.parts) {
    return false;
  }
  part.standing = *standing;
  part.who.resize(number);
  if (!in.read_into(std::span(part.who)) || part.who.back() >= part.parts ||
      std::ranges::adjacent_find(part.who, std::greater_equal()) != part.who.end()) {
    return false;
  }
  part.encoding = in.take_rest();
  return true;
}

void write_body(const ChunkMessage& chunk, ByteBuffer& out) {
  out.write(chunk.step);
  out.write(chunk.chunk);
}

bool read_body(MessageReader& in, ChunkMessage& chunk) {
  chunk.step = in.read<Round>();
  chunk.chunk = in.read<std::uint16_t>();
  chunk.encoding = in.take_rest();
  return !in.failed() && chunk.step <= kMostCount && chunk.chunk < kMostEpochMembers;
}

void write_body(const WantMessage& want, ByteBuffer& out) {
  out.write(want.step);
  out.write(want.part);
}

bool read_body(ByteReader& in, WantMessage& want) {
  want.step = in.read<Round>();
  want.part = in.read<std::uint16_t>();
  return want.step <= kMostCount && (want.part < kMostEpochMembers || want.part == kAllParts);
}

void write_body(const HaveMessage& have, ByteBuffer& out) {
  out.write(have.step);
  write_pair(have.digest, out);
  out.write(static_cast<std::uint8_t>(have.answers));
  write_claim(have.model, out);
}

bool read_body(ByteReader& in, HaveMessage& have) {
  have.step = in.read<Round>();
  have.digest = read_pair(in);
  return read_flag(in, have.answers) && have.step <= kMostCount && read_claim(in, have.model);
}

void write_body(const PrepareMessage& prepare, ByteBuffer& out) {
  write_ballot(prepare.ballot, out);
}
bool read_body(ByteReader& in, PrepareMessage& prepare) { return read_ballot(in, prepare.ballot); }

void write_body(const PromiseMessage& message, ByteBuffer& out) {
  write_ballot(message.ballot, out);
  write_promise(message.promise, out);
}
bool read_body(ByteReader& in, PromiseMessage& message) {
  return read_ballot(in, message.ballot) && read_promise(in, message.promise);
}

void write_body(const OutvotedMessage& outvoted, ByteBuffer& out) {
  write_ballot(outvoted.ballot, out);
}
bool read_body(ByteReader& in, OutvotedMessage& outvoted) {
  return read_ballot(in, outvoted.ballot);
}

void write_body(const AcceptMessage& accept, ByteBuffer& out) {
  write_ballot(accept.ballot, out);
  write_end(accept.value, out);
}
bool read_body(ByteReader& in, AcceptMessage& accept) {
  return read_ballot(in, accept.ballot) && read_end(in, accept.value);
}

void write_body(const AcceptedMessage& accepted, ByteBuffer& out) {
  write_ballot(accepted.ballot, out);
}
bool read_body(ByteReader& in, AcceptedMessage& accepted) {
  return read_ballot(in, accepted.ballot);
}

void write_body(const DecideMessage& decide, ByteBuffer& out) { write_end(decide.value, out); }
bool read_body(ByteReader& in, DecideMessage& decide) { return read_end(in, decide.value); }

void write_body(const AskMessage& /*ask*/, ByteBuffer& /*out*/) {}
bool read_body(ByteReader& /*in*/, AskMessage& /*ask*/) { return true; }

void write_body(const EnteredMessage& /*entered*/, ByteBuffer& /*out*/) {}
bool read_body(ByteReader& /*in*/, EnteredMessage& /*entered*/) { return true; }

void write_body(const JoinMessage& join, ByteBuffer& out) {
  write_step(join.wanted, out);
  write_step(join.ready, out);
  write_settings(join.settings, out);
}
bool read_body(ByteReader& in, JoinMessage& join) {
  return read_step(in, join.wanted) && read_step(in, join.ready) &&
         read_settings(in, join.settings);
}

void write_body(const DonorMessage& donor, ByteBuffer& out) {
  out.write(donor.step);
  out.write(donor.oldest);
  write_step(donor.copy, out);
  out.write(static_cast<std::uint8_t>(donor.settings.has_value()));
  if (donor.settings) {
    write_settings(*donor.settings, out);
  }
}
bool read_body(ByteReader& in, DonorMessage& donor) {
  donor.step = in.read<Round>();
  donor.oldest = in.read<Round>();
  bool differs = false;
  if (donor.step > kMostCount || donor.oldest > kMostCount || !read_step(in, donor.copy) ||
      !read_flag(in, differs)) {
    return false;
  }
  return !differs || read_settings(in, donor.settings.emplace());
}

void write_body(const FetchMessage& fetch, ByteBuffer& out) {
  out.write(fetch.step);
  out.write(fetch.index);
}
bool read_body(ByteReader& in, FetchMessage& fetch) {
  fetch.step = in.read<Round>();
  fetch.index = in.read<std::uint32_t>();
  return fetch.step <= kMostCount && fetch.index < kMostPieces;
}

void write_body(const PieceMessage& piece, ByteBuffer& out) {
  out.write(piece.step);
  write_pair(piece.root, out);
  out.write(piece.count);
  out.write(piece.index);
}

bool read_body(MessageReader& in, PieceMessage& piece) {
  piece.step = in.read<Round>();
  piece.root = read_pair(in);
  piece.count = in.read<std::uint32_t>();
  piece.index = in.read<std::uint32_t>();
  piece.bytes = in.take_rest();
  return piece.step <= kMostCount && piece.count <= kMostPieces && piece.index < piece.count;
}

template <typename Body>
Result<EpochMessage> read_message(const EpochHeader& header, MessageReader& in) {
  Body body;
  if (!read_body(in, body) || !in.finished()) {
    return ill_formed("a message of an epoch with a field that cannot be");
  }
  return EpochMessage{header, EpochBody(std::move(body))};
}

using Reader = Result<EpochMessage> (*)(const EpochHeader&, MessageReader&);

template <std::size_t... K>
Result<EpochMessage> read_kind(std::size_t kind, const EpochHeader& header, MessageReader& in,
                               std::index_sequence<K...> /*kinds*/) {
  static constexpr std::array<Reader, sizeof...(K)> kReaders = {
      &read_message<std::variant_alternative_t<K, EpochBody>>...};
  return kReaders[kind](header, in);
}

}  // namespace

void write_ballot(const Ballot& ballot, ByteBuffer& out) {
  out.write(ballot.number);
  write_node(ballot.by, out);
}

bool read_ballot(ByteReader& in, Ballot& ballot) {
  ballot.number = in.read<std::uint64_t>();
  return ballot.number <= kMostCount && read_node(in, ballot.by);
}

void write_accepted(const AcceptedValue& accepted, ByteBuffer& out) {
  write_ballot(accepted.ballot, out);
  write_value(accepted.value, out);
}

bool read_accepted(ByteReader& in, AcceptedValue& accepted) {
  return read_ballot(in, accepted.ballot) && read_value(in, accepted.value);
}

SharedBytes tail_of(const EpochBody& body) {
  if (const auto* chunk = std::get_if<ChunkMessage>(&body)) {
    return chunk->encoding;
  }
  if (const auto* part = std::get_if<PartMessage>(&body)) {
    return part->encoding;
  }
  const auto* piece = std::get_if<PieceMessage>(&body);
  return piece == nullptr ? SharedBytes() : piece->bytes;
}

std::vector<std::byte> encode(const EpochMessage& message) {
  std::vector<std::byte> bytes = encode_head(message);
  const SharedBytes tail = tail_of(message.body);
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  return bytes;
}

std::vector<std::byte> encode_head(const EpochMessage& message) {
  ByteBuffer out;
  out.write(static_cast<std::uint8_t>(message.body.index() + 1));
  out.write(kEpochProtocol);
  write_pair(message.header.history, out);
  out.write(message.header.epoch);
  out.write(message.header.stay);
  std::visit([&](const auto& body) { write_body(body, out); }, message.body);
  return std::move(out).take();
}

Result<EpochMessage> parse_epoch(const SharedBytes& bytes) {
  constexpr std::size_t kKinds = std::variant_size_v<EpochBody>;
  MessageReader in(bytes);
  const auto kind = in.read<std::uint8_t>();
  const auto protocol = in.read<std::uint8_t>();
  EpochHeader header{.history = read_pair(in)};
  header.epoch = in.read<Epoch>();
  header.stay = in.read<std::uint32_t>();
  if (in.failed() || header.epoch > kMostCount) {
    return ill_formed("a message of an epoch that is too short");
  }
  if (protocol != kEpochProtocol) {
    return ill_formed(fmt::format("an epoch's protocol {}, this is {}", protocol, kEpochProtocol));
  }
  if (kind < 1 || kind > kKinds) {
    return ill_formed("a message of an epoch of an unknown kind");
  }
  return read_kind(kind - 1U, header, in, std::make_index_sequence<kKinds>());
}

}  // namespace sotto::sites
