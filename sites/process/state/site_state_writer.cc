#include <sotto/sites/process/state/site_state_writer.h>

#include <chrono>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/base/elapsed.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::size_t SiteStateWriter::bytes_of_state() const {
  return ByteBuffer::size_of([this](ByteBuffer& out) { parts_.site.save(out); });
}

void SiteStateWriter::take_state(bool complete) {
  ByteBuffer site(std::move(state_.site));
  parts_.site.save(site);
  incarnation_ = parts_.site.state().incarnation;
  round_ = parts_.site.round();
  state_ = {.round = round_,
            .settings = state_settings(parts_.options.name, parts_.settings),
            .site = std::move(site).take(),
            .run = encode_site_run({.steps = parts_.gradients.steps(), .complete = complete})};
}

Status SiteStateWriter::save(bool complete) {
  if (parts_.folder == nullptr) {
    incarnation_ = parts_.site.state().incarnation;
    return {};
  }
  if (Status status = settle(); !status.ok()) {
    return status;
  }
  const auto start = Clock::now();
  StateThread::make_room_at_once(state_.site, bytes_of_state());
  take_state(complete);
  Status status = parts_.folder->write(state_);
  seconds_ += seconds_since(start);
  return status;
}

Status SiteStateWriter::settle() {
  thread_.settle(meanwhile_);
  return thread_.written();
}

Status SiteStateWriter::keep() {
  if (!beside()) {
    return save(true);
  }
  if (!thread_.idle()) {
    return {};
  }
  if (!thread_.written().ok() || parts_.site.round() < round_ + parts_.options.save_every) {
    return thread_.written();
  }
  if (!thread_.make_room(state_.site, bytes_of_state())) {
    return {};  // a step after this one copies
  }
  take_state(false);
  thread_.write([this] { return parts_.folder->write(state_); });
  return {};
}

Status SiteStateWriter::save_new_incarnation() {
  if (beside()) {
    return {};  // whatever is written is not this site's last
  }
  return parts_.site.state().incarnation == incarnation_ ? Status() : save(true);
}

}  // namespace sotto
