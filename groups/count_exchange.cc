#include <sotto/groups/count_exchange.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/none.h>
#include <sotto/groups/count_codec.h>

namespace sotto {
namespace {

/// With more members, sums of chunks are fewer bytes than copies of all changes.
constexpr int kMostGathered = 3;

CountRoom checked_room(const GroupMember& member, CountRoom room) {
  require_between("counts", room.counts, 1, kMostDimension);
  room.most = std::min(room.most, room.counts);
  if (room.form == CountForm::choose) {
    room.form = member.group.size() <= kMostGathered ? CountForm::gather : CountForm::scatter;
  }
  return room;
}

/// Bytes of the frames out: in scatter, chunks for the others, the first with room for a sum.
std::vector<std::size_t> rooms_for(const GroupMember& member, const CountRoom& room) {
  if (room.form == CountForm::gather) {
    return {max_change_bytes(room.counts, room.most)};
  }
  const std::size_t longest = longest_chunk(room.counts, member.group.size());
  std::vector<std::size_t> rooms(std::max<std::size_t>(member.others_count(), 1),
                                 max_change_bytes(longest, room.most));
  rooms.front() = max_change_bytes(longest, longest);
  return rooms;
}

}  // namespace

CountExchange::CountExchange(GroupMember member, const CountRoom& room)
    : Collective(member, member.others_count(), rooms_for(member, checked_room(member, room))),
      room_(checked_room(member, room)),
      others_(member_.others()),
      parcels_(others_.size()),
      elements_in_(others_.size()) {}

std::string CountExchange::signature() const {
  return fmt::format("{} of {} counts, {} changed at most, among {} of group {}",
                     room_.form == CountForm::gather ? "gather" : "scatter", room_.counts,
                     room_.most, members(), group().number);
}

int CountExchange::phases() const {
  return members() == 1 ? 0 : room_.form == CountForm::gather ? 1 : 2;
}

ExchangeVolume CountExchange::volume() const {
  const auto frame = [](std::size_t counts, std::size_t most) {
    return EdgeVolume{.frames = 1,
                      .elements = std::min(counts, most),
                      .bytes = kFrameHeaderBytes + max_change_bytes(counts, most)};
  };
  ExchangeVolume volume;
  for (int other = 0; other < members(); ++other) {
    if (other == position()) {
      continue;
    }
    const Rank peer = group().rank_of(other);
    if (room_.form == CountForm::gather) {
      volume.sent[peer] = frame(room_.counts, room_.most);
      volume.received[peer] = volume.sent[peer];
      continue;
    }
    const std::size_t own = chunk(position()).size;
    const std::size_t others = chunk(other).size;
    volume.sent[peer] = frame(others, room_.most);
    volume.sent[peer] += frame(own, own);
    volume.received[peer] = frame(own, room_.most);
    volume.received[peer] += frame(others, others);
  }
  return volume;
}

void CountExchange::begin(std::span<std::int32_t> agreed, std::span<std::int32_t> own) {
  check(!busy(), "a collective does one thing at a time");
  check(agreed.size() == room_.counts && own.size() == room_.counts, "counts have their room");
  agreed_ = agreed;
  own_ = own;
  phase_ = 0;
  sending_bytes_ = 0;
  begun_ = members() > 1;
  if (!begun_) {
    sent_bytes_ = 0;
    std::ranges::copy(own_, agreed_.begin());
  }
}

Chunk CountExchange::carried(int from, int to) const {
  if (room_.form == CountForm::gather) {
    return {.offset = 0, .size = room_.counts};
  }
  return chunk(phase_ == 0 ? to : from);
}

std::size_t CountExchange::most_carried(const Chunk& counts) const {
  const bool of_all = phase_ == 1;  // a sum has the changes of all members
  return of_all ? counts.size : std::min(counts.size, room_.most);
}

Parcel CountExchange::encode(const Chunk& counts, std::span<std::byte> out) const {
  const EncodedChanges encoded =
      encode_changes(counts.of(std::span<const std::int32_t>(agreed_)),
                     counts.of(std::span<const std::int32_t>(own_)), out);
  check(encoded.changes <= most_carried(counts), "no more counts change than is said");
  return {.elements = encoded.changes, .payload_bytes = encoded.bytes};
}

void CountExchange::post_own() {
  const Parcel parcel = encode(carried(position(), position()), mail_.outgoing());
  sending_bytes_ += others_.size() * (kFrameHeaderBytes + parcel.payload_bytes);
  mail_.post({.tag = tag(phase_),
              .compressor = kNoneWireId,
              .to = others_,
              .from = others_,
              .elements_out = parcel.elements,
              .elements_by_sender = elements_in_,
              .at_most = true},
             parcel.payload_bytes);
}

void CountExchange::post_chunks() {
  for (int to = 0; to < members(); ++to) {
    if (to != position()) {
      const std::size_t edge = member_.other(to);
      parcels_[edge] = encode(carried(position(), to), mail_.outgoing(edge));
      sending_bytes_ += kFrameHeaderBytes + parcels_[edge].payload_bytes;
    }
  }
  mail_.post_each({.tag = tag(phase_),
                   .compressor = kNoneWireId,
                   .to = others_,
                   .from = others_,
                   .elements_by_sender = elements_in_,
                   .at_most = true},
                  parcels_);
}

Result<bool> CountExchange::next_exchange(Exchange& out) {
  if (open() || !begun_) {
    return false;
  }
  begun_ = false;
  for (int from = 0; from < members(); ++from) {
    if (from != position()) {
      elements_in_[member_.other(from)] = most_carried(carried(from, position()));
    }
  }
  if (room_.form == CountForm::scatter && phase_ == 0) {
    post_chunks();
  } else {
    post_own();
  }
  return mail_.next_exchange(out);
}

void CountExchange::take() {
  for (int from = 0; from < members(); ++from) {
    if (from == position()) {
      continue;
    }
    const Chunk counts = carried(from, position());
    const auto own = counts.of(own_);
    if (phase_ == 1) {  // the sum has this node's changes, too
      std::ranges::copy(counts.of(agreed_), own.begin());
    }
    add_changes(mail_.payload(member_.other(from)), own);
  }
}

Status CountExchange::end() {
  sent_bytes_ = sending_bytes_;
  std::ranges::copy(own_, agreed_.begin());
  const auto negative = std::ranges::find_if(agreed_, [](std::int32_t count) { return count < 0; });
  if (negative != agreed_.end()) {
    return {Fault::malformed, fmt::format("count number {} is {} once all changes are added",
                                          negative - agreed_.begin(), *negative)};
  }
  return {};
}

Status CountExchange::complete(const Exchange& exchange) {
  const auto judge = [this](std::size_t edge) {
    const int at = static_cast<int>(edge);
    const int from = at < position() ? at : at + 1;
    return check_changes(mail_.payload(edge), carried(from, position()).size);
  };
  if (Status status = mail_.accept(exchange, judge); !status.ok()) {
    return status;
  }
  take();
  mail_.close();
  if (++phase_ < phases()) {
    begun_ = true;
    return {};
  }
  return end();
}

}  // namespace sotto
