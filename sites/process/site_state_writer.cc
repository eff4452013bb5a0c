#include <sotto/sites/process/site_state_writer.h>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/elapsed.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

/// `meanwhile` is called this often.
constexpr std::chrono::milliseconds kLookEvery{10};

/// No step waits for more memory than this that is new to the process.
constexpr std::size_t kQuick = std::size_t{16} << 20;

/// What this thread computes waits for other threads that want the core. A refusal changes nothing
/// but times.
void yield_to_training() {
  constexpr int kNice = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

}  // namespace

bool SiteStateWriter::has_room() {
  size_ = ByteBuffer::size_of([this](ByteBuffer& out) { source_.site.save(out); });
  return state_.site.capacity() >= size_;
}

void SiteStateWriter::make_room() {
  state_.site = std::vector<std::byte>();  // before there is more
  // What is new to the process comes page by page as it is written to: now. Later states may be a
  // little longer.
  state_.site.resize(size_ + size_ / 16);
}

void SiteStateWriter::take_state(bool complete) {
  ByteBuffer site(std::move(state_.site));
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
  if (!has_room()) {
    make_room();
  }
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
  bool room = has_room();
  if (!room && size_ <= kQuick) {
    make_room();
    room = true;
  }
  writing_ = true;
  if (!room) {
    begin_job([this] { make_room(); });  // a step after this one copies
    return {};
  }
  take_state(false);
  begin_job([this] { written_ = source_.folder->write(state_); });
  return {};
}

void SiteStateWriter::begin_job(std::function<void()> job) {
  thread_->begin([this, job = std::move(job)] {
    yield_to_training();
    try {
      job();
    } catch (const std::exception& exception) {
      written_ = Status(Fault::io, exception.what());
    }
  });
}

Status SiteStateWriter::save_new_incarnation() {
  if (beside()) {
    return {};  // whatever is written is not this site's last
  }
  return source_.site.state().incarnation == incarnation_ ? Status() : save(true);
}

}  // namespace sotto
