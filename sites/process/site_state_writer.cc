#include <sotto/sites/process/site_state_writer.h>

#include <chrono>
#include <exception>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/base/elapsed.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

/// `meanwhile` is called this often.
constexpr std::chrono::milliseconds kLookEvery{10};

}  // namespace

void SiteStateWriter::take_state(bool complete) {
  // Into the memory of the state before: fresh memory of this size is slow, and a buffer that grows
  // holds the state twice. The next ones may be a little longer.
  const bool first = state_.site.capacity() == 0;
  ByteBuffer site(std::move(state_.site));
  if (first) {
    const std::size_t size =
        ByteBuffer::size_of([this](ByteBuffer& out) { source_.site.save(out); });
    site.reserve(size + size / 8);
  }
  source_.site.save(site);
  incarnation_ = source_.site.state().incarnation;
  round_ = source_.site.round();
  state_ = {.round = round_,
            .settings = state_settings(source_.options.name, source_.settings),
            .site = std::move(site).take(),
            .run = encode_site_run({.steps = source_.gradients.steps(), .complete = complete})};
}

Status SiteStateWriter::save(bool complete) {
  if (source_.folder == nullptr) {
    incarnation_ = source_.site.state().incarnation;
    return {};
  }
  if (Status status = settle(); !status.ok()) {
    return status;
  }
  const auto start = Clock::now();
  take_state(complete);
  Status status = source_.folder->write(state_);
  seconds_ += seconds_since(start);
  return status;
}

Status SiteStateWriter::settle() {
  while (writing_) {
    writing_ = !thread_->wait(kLookEvery);
    if (writing_) {
      meanwhile_();
    }
  }
  return written_;
}

Status SiteStateWriter::keep() {
  if (!beside()) {
    return save(true);
  }
  writing_ = writing_ && !thread_->wait({});
  if (writing_) {
    return {};
  }
  if (!written_.ok() || source_.site.round() < round_ + source_.options.save_every) {
    return written_;
  }
  if (!thread_) {
    thread_.emplace("what is written");
  }
  take_state(false);
  thread_->begin([this] {
    try {
      written_ = source_.folder->write(state_);
    } catch (const std::exception& exception) {
      written_ = Status(Fault::io, exception.what());
    }
  });
  writing_ = true;
  return {};
}

Status SiteStateWriter::save_new_incarnation() {
  if (beside()) {
    return {};  // whatever is written is not this site's last
  }
  return source_.site.state().incarnation == incarnation_ ? Status() : save(true);
}

}  // namespace sotto
