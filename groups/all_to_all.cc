#include <sotto/groups/all_to_all.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

/// Checks a room, for initializers.
const RowRoom& checked_room(const RowRoom& room) {
  constexpr std::size_t kMostRows = std::numeric_limits<std::uint16_t>::max();
  require_between("width", room.width, 1, kMostDimension);
  require_between("slots", room.slots, 1, std::min(kMostRows, kMostDimension / room.width));
  require_between("capacity", room.capacity, 1,
                  std::min(kMostRows, kMostDimension / room.width / room.slots));
  return room;
}

std::vector<std::size_t> rooms_for(const GroupMember& member, const RowRoom& room,
                                   const Encoding& encoding) {
  const std::size_t row = RowCodec(room.width, encoding, member.node->ops()).row_bytes();
  const auto frames = static_cast<std::size_t>(std::max(1, member.group.size() - 1));
  return std::vector<std::size_t>(frames,
                                  room.slots * (sizeof(std::uint16_t) + room.capacity * row));
}

}  // namespace

AllToAll::AllToAll(GroupMember member, const RowRoom& room, const Encoding& encoding)
    : OnePhaseCollective(member, member.others_count(),
                         rooms_for(member, checked_room(room), encoding)),
      room_(room),
      codec_(room.width, encoding, node().ops()),
      others_(member_.others()),
      parcels_(others_.size()),
      counts_in_(slots_of_all()),
      rows_in_(slots_of_all() * room.capacity * room.width) {
  refuse_keyed(encoding);
}

std::string AllToAll::signature() const {
  return fmt::format(
      "all-to-all of {} slots of up to {} rows of {} elements by {} among {} of "
      "group {}",
      room_.slots, room_.capacity, room_.width, codec_.spec(), members(), group().number);
}

std::uint64_t AllToAll::parts() const { return slots_of_all() * room_.capacity; }

std::size_t AllToAll::count_of(std::span<const std::uint16_t> counts, int at) const {
  const auto own = counts.subspan(static_cast<std::size_t>(at) * room_.slots, room_.slots);
  return std::accumulate(own.begin(), own.end(), std::size_t{0});
}

ExchangeVolume AllToAll::volume() const {
  const std::vector<std::uint16_t> full(slots_of_all(), static_cast<std::uint16_t>(room_.capacity));
  ExchangeVolume volume = volume_of(full);
  volume.received = volume.sent;
  return volume;
}

ExchangeVolume AllToAll::volume_of(std::span<const std::uint16_t> counts) const {
  ExchangeVolume volume;
  for (int to = 0; to < members(); ++to) {
    if (to != position()) {
      const std::size_t rows = count_of(counts, to);
      volume.sent[group().rank_of(to)] = {
          .frames = 1,
          .elements = rows * room_.width,
          .bytes =
              kFrameHeaderBytes + room_.slots * sizeof(std::uint16_t) + rows * codec_.row_bytes()};
    }
  }
  return volume;
}

void AllToAll::begin(std::span<const std::uint16_t> counts, std::span<const float> rows) {
  check(!busy(), "a collective does one thing at a time");
  check(counts.size() == slots_of_all(), "there is a count for each slot of each member");
  std::size_t all = 0;
  for (const std::uint16_t count : counts) {
    check(count <= room_.capacity, "no slot has more rows than its capacity");
    all += count;
  }
  check(rows.size() == all * room_.width, "there are as many rows as the counts say");
  counts_out_ = counts;
  rows_out_ = rows;
  if (members() > 1) {
    begin_exchange();
    return;
  }
  elements_in_ = 0;
  take_own(0);
}

Parcel AllToAll::encode(int to, std::size_t first_row, std::span<std::byte> out) {
  ByteWriter writer(out);
  const auto counts = counts_out_.subspan(static_cast<std::size_t>(to) * room_.slots, room_.slots);
  for (const std::uint16_t count : counts) {
    writer.write(count);
  }
  const std::size_t rows = count_of(counts_out_, to);
  for (std::size_t row = first_row; row < first_row + rows; ++row) {
    saturated_ += codec_.encode(rows_out_.subspan(row * room_.width, room_.width), key(row),
                                writer.reserve(codec_.row_bytes()));
  }
  return {.elements = rows * room_.width, .payload_bytes = writer.position()};
}

Status AllToAll::post() {
  if (Status status = node().require_finite(rows_out_, "matrix of rows that are sent");
      !status.ok()) {
    return status;
  }
  std::size_t row = 0;
  for (int to = 0; to < members(); ++to) {
    if (to != position()) {
      const std::size_t edge = member_.other(to);
      parcels_[edge] = encode(to, row, mail_.outgoing(edge));
    }
    row += count_of(counts_out_, to);
  }
  mail_.post_each({.tag = tag(0),
                   .compressor = codec_.wire_id(),
                   .to = others_,
                   .from = others_,
                   .elements_out = 0,
                   .elements_in = room_.slots * room_.capacity * room_.width,
                   .at_most = true},
                  parcels_);
  return {};
}

Status AllToAll::judge(std::size_t edge) const {
  const auto payload = mail_.payload(edge);
  ByteReader reader(payload);
  std::size_t rows = 0;
  for (std::size_t slot = 0; slot < room_.slots; ++slot) {
    const auto count = reader.read<std::uint16_t>();
    if (count > room_.capacity) {
      return {Fault::malformed, fmt::format("{} rows in slot {}, which has room for {}", count,
                                            slot, room_.capacity)};
    }
    rows += count;
  }
  if (reader.failed() || reader.remaining() != rows * codec_.row_bytes()) {
    return {Fault::malformed, fmt::format("{} bytes for {} slots and {} rows of {} bytes",
                                          payload.size(), room_.slots, rows, codec_.row_bytes())};
  }
  return {};
}

Status AllToAll::take(int from, std::span<const std::byte> payload) {
  ByteReader reader(payload);
  for (std::size_t slot = 0; slot < room_.slots; ++slot) {
    counts_in_[static_cast<std::size_t>(from) * room_.slots + slot] = reader.read<std::uint16_t>();
  }
  while (reader.remaining() > 0) {
    const auto out = std::span(rows_in_).subspan(elements_in_, room_.width);
    if (Status status = codec_.decode(reader.take(codec_.row_bytes()), out, false); !status.ok()) {
      return status;
    }
    elements_in_ += room_.width;
  }
  return {};
}

void AllToAll::take_own(std::size_t first_row) {
  const std::size_t at = static_cast<std::size_t>(position()) * room_.slots;
  std::ranges::copy(counts_out_.subspan(at, room_.slots),
                    counts_in_.begin() + static_cast<std::ptrdiff_t>(at));
  const auto own =
      rows_out_.subspan(first_row * room_.width, count_of(counts_out_, position()) * room_.width);
  std::ranges::copy(own, rows_in_.begin() + static_cast<std::ptrdiff_t>(elements_in_));
  elements_in_ += own.size();
}

Status AllToAll::complete(const Exchange& exchange) {
  const auto judge_edge = [this](std::size_t edge) { return judge(edge); };
  if (Status status = mail_.accept(exchange, judge_edge); !status.ok()) {
    return status;
  }
  elements_in_ = 0;
  std::size_t row = 0;
  for (int from = 0; from < members(); ++from) {
    if (from == position()) {
      take_own(row);
    } else {
      const std::size_t edge = member_.other(from);
      if (Status status = take(from, mail_.payload(edge)); !status.ok()) {
        return mail_.refuse(edge, status);
      }
    }
    row += from < position() ? count_of(counts_out_, from) : 0;
  }
  mail_.close();
  return {};
}

}  // namespace sotto
