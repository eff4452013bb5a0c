#include "keyed_batch.h"

#include <algorithm>

#include <fmt/format.h>

namespace sotto {

ExchangeVolume KeyedLink::Batch::volume() const {
  const EdgeVolume most = {.frames = 1,
                           .elements = shared_->options.rows * width(),
                           .bytes = kFrameHeaderBytes + most_bytes_};
  ExchangeVolume volume;
  if (sends()) {
    volume.sent[group().rank_of(to_position_)] = most;
  } else if (position() == to_position_) {
    volume.received[group().rank_of(from_position_)] = most;
  }
  return volume;
}

Status KeyedLink::Batch::post() {
  ExchangePlan plan = {.tag = tag(0),
                       .compressor = wire_id_,
                       .to = {},
                       .from = {},
                       .elements_out = keys().size() * width(),
                       .elements_in = keys().size() * width()};
  if (!sends()) {
    plan.from = from_;
    mail_.post(plan, 0);
    return {};
  }
  if (Status status = node().require_finite(rows_, "matrix of rows that are sent"); !status.ok()) {
    return status;
  }
  plan.to = to_;
  const auto payload = mail_.outgoing();
  ByteWriter writer(payload);
  if (Status status = write(writer); !status.ok()) {
    return status;
  }
  done(payload.first(writer.position()));
  mail_.post(plan, writer.position());
  return {};
}

Status KeyedLink::Batch::judge() {
  ByteReader reader(mail_.payload(0));
  Status status = read(reader);
  if (status.ok() && !reader.finished()) {
    return {Fault::malformed, fmt::format("a payload of {} bytes is none of {} rows",
                                          mail_.payload(0).size(), keys().size())};
  }
  return status;
}

Status KeyedLink::Batch::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange, [this](std::size_t) { return judge(); });
      !status.ok()) {
    return status;
  }
  if (!sends()) {
    done(mail_.payload(0));
  }
  mail_.close();
  return {};
}

std::string KeyedLink::Rows::signature() const {
  const KeyedLinkOptions& options = shared_->options;
  return fmt::format(
      "batch {} of {} of up to {} rows of {} elements under {} keys by {} after {}, back by {}, "
      "from {} to {} of {} of group {}{}",
      batch_, options.batches, options.rows, options.width, options.keys, shared_->later.spec(),
      shared_->first.spec(), shared_->back.spec(), options.from, options.to, members(),
      group().number, options.memory == KeyedForm::fp16 ? ", remembered in fp16" : "");
}

Status KeyedLink::Rows::write(ByteWriter& out) {
  out.write(digest());
  for (std::size_t i = 0; i < keys().size(); ++i) {
    if (Status status = encode(i, out.reserve(shared_->row_bytes(keys()[i]))); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status KeyedLink::Rows::encode(std::size_t i, std::span<std::byte> out) {
  const auto row = row_out(i);
  if (shared_->exact) {
    saturated_ += shared_->later.encode(row, key(i), out);
    return {};
  }
  const auto made = shared_->held_of(batch_, i);
  const auto held = shared_->memory.row(keys()[i]);
  if (held.empty()) {
    saturated_ += shared_->first.encode(row, key(i), out);
    Status status = node().here(shared_->first.decode(out, made, false));
    saturated_ += shared_->memory.round(made);
    return status;
  }
  node().ops().subtract(row, held, made);
  if (Status status = node().require_finite(made, "change of a row that is sent"); !status.ok()) {
    return status;
  }
  saturated_ += shared_->later.encode(made, key(i), out);
  std::ranges::copy(held, made.begin());
  if (Status status = shared_->later.decode(out, made, true); !status.ok()) {
    return node().here(status);
  }
  if (Status status = node().require_finite(made, "row that both ends hold"); !status.ok()) {
    return status;
  }
  saturated_ += shared_->memory.round(made);
  return {};
}

Status KeyedLink::Rows::read(ByteReader& in) {
  if (in.read<std::uint64_t>() != digest()) {
    return {Fault::unexpected,
            "it comes of other keys, or another memory of rows, than this node has; give both ends "
            "the same keys in the same order, and checkpoints of the same round"};
  }
  for (std::size_t i = 0; i < keys().size(); ++i) {
    const auto held = shared_->memory.row(keys()[i]);
    const auto bytes = in.take(shared_->row_bytes(keys()[i]));
    if (in.failed()) {
      return {};
    }
    std::ranges::copy(held, row_in(i).begin());
    const RowCodec& codec = shared_->exact || !held.empty() ? shared_->later : shared_->first;
    if (Status status = codec.decode(bytes, row_in(i), !held.empty()); !status.ok()) {
      return status;
    }
    if (node().ops().count_non_finite(row_in(i)).count > 0) {
      return {Fault::non_finite, fmt::format("row {} is not finite with its change", i)};
    }
    if (!shared_->exact) {
      (void)shared_->memory.round(row_in(i));  // the sender counts what is cut
    }
  }
  return {};
}

void KeyedLink::Rows::done(std::span<const std::byte> payload) {
  const std::uint64_t with_keys = digest();
  for (std::size_t i = 0; i < keys().size(); ++i) {
    ++(shared_->comes_again(keys()[i]) ? shared_->counts.again : shared_->counts.first);
    if (!shared_->exact) {
      shared_->memory.put(keys()[i], shared_->held_of(batch_, i));
    }
  }
  shared_->under_way[batch_] = false;
  shared_->memory.set_digest(with_keys);
  shared_->memory.set_digest(shared_->memory.digest_after(payload));
}

std::string KeyedLink::Gradients::signature() const {
  return fmt::format("gradients of batch {} by {} from {} to {} of group {}", batch_,
                     shared_->back.spec(), shared_->options.to, shared_->options.from,
                     group().number);
}

Status KeyedLink::Gradients::write(ByteWriter& out) {
  for (std::size_t i = 0; i < keys().size(); ++i) {
    saturated_ += shared_->back.encode(row_out(i), key(i), out.reserve(shared_->back.row_bytes()));
  }
  return {};
}

Status KeyedLink::Gradients::read(ByteReader& in) {
  Status status;
  for (std::size_t i = 0; status.ok() && i < keys().size(); ++i) {
    const auto bytes = in.take(shared_->back.row_bytes());
    if (in.failed()) {
      break;
    }
    status = shared_->back.decode(bytes, row_in(i), false);
  }
  return status;
}

}  // namespace sotto
