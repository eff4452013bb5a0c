#include <sotto/groups/ring_hop.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto {

RingHop::RingHop(GroupMember member, std::string what, const HopRows& rows, RowCodec& codec)
    : OnePhaseCollective(std::move(member), 1, {rows.most * codec.row_bytes()}),
      what_(std::move(what)),
      rows_(rows),
      codec_(&codec) {
  check(members() > 1, "a ring has two members or more");
  to_ = {member_.edge((position() + 1) % members())};
  from_ = {member_.edge((position() + members() - 1) % members())};
}

std::string RingHop::signature() const {
  return fmt::format("{}: up to {} rows of {} elements by {} to the next of {} of group {}", what_,
                     rows_.most, codec_->width(), codec_->spec(), members(), group().number);
}

EdgeVolume RingHop::volume_of(std::size_t rows) const {
  return {.frames = 1,
          .elements = rows * codec_->width(),
          .bytes = kFrameHeaderBytes + rows * codec_->row_bytes()};
}

ExchangeVolume RingHop::volume() const {
  ExchangeVolume volume;
  volume.sent[to_.front().peer] = volume_of(rows_.out);
  volume.received[from_.front().peer] = volume_of(rows_.in);
  return volume;
}

Status RingHop::encode(std::span<const float> rows, std::span<std::byte> out) {
  if (Status status = node().require_finite(rows, what_); !status.ok()) {
    return status;
  }
  const std::size_t width = codec_->width();
  const std::size_t count = rows.size() / width;
  check(count <= rows_.most && out.size() >= count * codec_->row_bytes(),
        "a ring's rows have room");
  for (std::size_t i = 0; i < count; ++i) {
    saturated_ += codec_->encode(rows.subspan(i * width, width), key(i),
                                 out.subspan(i * codec_->row_bytes(), codec_->row_bytes()));
  }
  return {};
}

void RingHop::begin(std::span<const std::byte> out, std::span<std::byte> in,
                    std::span<float> rows) {
  check(out.size() == rows_.out * codec_->row_bytes() &&
            in.size() == rows_.in * codec_->row_bytes() &&
            rows.size() == rows_.in * codec_->width(),
        "a hop has its rows");
  out_ = out;
  in_ = in;
  rows_in_ = rows;
  begin_exchange();
}

Status RingHop::post() {
  std::ranges::copy(out_, mail_.outgoing().begin());
  mail_.post({.tag = tag(0),
              .compressor = codec_->wire_id(),
              .to = to_,
              .from = from_,
              .elements_out = rows_.out * codec_->width(),
              .elements_in = rows_.in * codec_->width()},
             out_.size());
  return {};
}

Status RingHop::decode() {
  const auto payload = mail_.payload(0);
  if (payload.size() != in_.size()) {
    return {Fault::malformed,
            fmt::format("a payload of {} bytes is none of {} rows", payload.size(), rows_.in)};
  }
  for (std::size_t i = 0; i < rows_.in; ++i) {
    const auto bytes = payload.subspan(i * codec_->row_bytes(), codec_->row_bytes());
    if (Status status =
            codec_->decode(bytes, rows_in_.subspan(i * codec_->width(), codec_->width()), false);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

Status RingHop::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange, [this](std::size_t) { return decode(); });
      !status.ok()) {
    return status;
  }
  std::ranges::copy(mail_.payload(0), in_.begin());
  mail_.close();
  return {};
}

}  // namespace sotto
