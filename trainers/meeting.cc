#include <sotto/trainers/meeting.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/run_keys.h>
#include <sotto/optim/round_terms.h>
#include <sotto/trainers/model_sum.h>

#include "internal/agreement/run_news.h"
#include "internal/agreement/store_look.h"

namespace sotto {

namespace {

/// How often a wait looks whether somebody gave up: soon at first, as others are mostly near.
constexpr std::chrono::milliseconds kFirstPatience{20};
constexpr std::chrono::milliseconds kLongestPatience{250};
/// Beats in a timeout, many enough for a busy machine.
constexpr int kBeats = 8;
constexpr std::size_t kMaxCause = 4'000;

/// Under which the models of a meeting lie.
std::string models_of(Round round) { return fmt::format("model/{}", round); }

/// Shows under a key of the store that this process is alive, from a thread of its own.
class Pulse {
 public:
  Pulse(Store& store, std::string key, std::chrono::milliseconds period)
      : store_(store),
        key_(std::move(key)),
        thread_(start_thread("a sign of life", [this, period] { beat(period); })) {}
  ~Pulse() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_one();
    thread_.join();
    (void)store_.remove(key_);
  }
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

 private:
  void beat(std::chrono::milliseconds period) {
    std::unique_lock lock(mutex_);
    for (std::uint64_t count = 1; !stopping_; ++count) {
      lock.unlock();
      (void)store_.set(key_, std::as_bytes(std::span(&count, 1)));  // the next may come through
      lock.lock();
      stop_.wait_for(lock, period, [this] { return stopping_; });
    }
  }

  Store& store_;
  const std::string key_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

/// The bytes sent so far and the model, as published.
struct Published {
  std::uint64_t bytes_sent = 0;
  double weight = 1;
  std::vector<float> parameters;
  std::vector<std::byte> note;
};

Result<Published> read_model(std::span<const std::byte> value, Rank rank, std::size_t dimension) {
  ByteReader in(value);
  Published model;
  model.parameters.resize(dimension);
  model.bytes_sent = in.read<std::uint64_t>();
  model.weight = in.read<double>();
  in.read_into(std::span<float>(model.parameters));
  const auto note = in.take(in.remaining());
  model.note.assign(note.begin(), note.end());
  if (!in.finished()) {
    return Status(Fault::malformed, fmt::format("the model of node {} has another length", rank));
  }
  if (!is_weight(model.weight)) {
    return Status(
        Fault::malformed,
        fmt::format("node {} counts its model by {}, which is no weight", rank, model.weight));
  }
  return model;
}

/// No node gives up with an agreed end, or because another node's caller wanted a wait to end, and
/// runs have no queues of messages.
bool can_be_given_up_with(Fault fault) {
  switch (fault) {
    case Fault::malformed:
    case Fault::unexpected:
    case Fault::non_finite:
    case Fault::peer_lost:
    case Fault::deadline:
    case Fault::io:
    case Fault::budget:
      return true;
    case Fault::none:
    case Fault::ended:
    case Fault::stopped:
    case Fault::backlog:
      return false;
  }
  return false;  // a number that no kind has
}

Status read_cause(std::span<const std::byte> value) {
  ByteReader in(value);
  const auto fault = static_cast<Fault>(in.read<std::uint8_t>());
  const std::string message = in.read_string(kMaxCause);
  return in.finished() && can_be_given_up_with(fault)
             ? Status(fault, message)
             : Status(Fault::malformed, "a node gave up and its reason cannot be read");
}

}  // namespace

void Meetings::give_up(const Status& given) {
  // The caller of this node wanted its wait to end; nobody wanted that of the others.
  const std::string_view why = given.message();
  const std::string self = fmt::format("node {}: ", rank_);
  Status cause = given;
  if (given.fault() == Fault::stopped) {
    cause = {Fault::peer_lost, fmt::format("node {} was told to stop ({})", rank_,
                                           why.starts_with(self) ? why.substr(self.size()) : why)};
  } else if (given.fault() == Fault::ended) {
    cause = {Fault::peer_lost, given.message()};
  }
  ByteBuffer value;
  value.write(static_cast<std::uint8_t>(cause.fault()));
  value.write_string(excerpt(cause.message(), kMaxCause));
  if (store_.set(given_up_key(), value.bytes()).ok()) {  // else the others see a lost peer
    (void)internal::RunNews(store_).announce();
  }
}

Status Meetings::given_up() {
  const auto value = store_.get(given_up_key(), Deadline::after({}));
  return value.ok() ? read_cause(*value) : Status();
}

Status Meetings::given_up_or(const Status& cause) {
  const auto look = internal::look_for(store_, given_up_key());
  if (look.value) {
    return read_cause(*look.value);
  }
  if (look.answered) {
    give_up(cause);
  }
  return {};
}

Result<std::vector<std::byte>> Meetings::await(const std::string& key, Rank peer,
                                               std::chrono::milliseconds patience,
                                               const std::string& pulse) {
  auto deadline = Deadline::after(patience);
  std::vector<std::byte> last;
  for (auto look = kFirstPatience;; look = std::min(2 * look, kLongestPatience)) {
    auto value = store_.get(key, deadline.left() < look ? deadline : Deadline::after(look));
    if (value.status().fault() == Fault::stopped) {
      return Status(Fault::stopped,
                    fmt::format("node {}: stopped while waiting for node {}", rank_, peer));
    }
    if (value.ok() || value.status().fault() != Fault::deadline) {
      return value;
    }
    if (Status cause = given_up(); !cause.ok()) {
      return cause;
    }
    if (Status end = look_at(peer); !end.ok()) {
      return end;
    }
    if (Status lost = miss_ ? miss_(peer) : Status(); !lost.ok()) {
      return lost;
    }
    if (!pulse.empty()) {
      auto now = store_.get(pulse, Deadline::after({}));
      if (now.ok() && *now != last) {
        last = std::move(*now);
        deadline = Deadline::after(patience);
      }
    }
    if (deadline.expired()) {
      return naming_timeout(value.status(), timeout_)
          .with_context(fmt::format("node {}: waiting for node {}", rank_, peer));
    }
  }
}

Status Meetings::look_at(Rank peer) {
  const Status end = look_ ? look_(peer) : Status();
  return end.ok() ? end : end.with_context(fmt::format("node {}", rank_));
}

Status Meetings::await_all(std::string_view name) {
  for (Rank peer = 1; peer < nodes_; ++peer) {
    if (const auto value = await(node_key(name, peer), peer); !value.ok()) {
      return value.status();
    }
    // One that was there before this node, so that nobody waited, may have come from elsewhere.
    if (Status status = look_at(peer); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status Meetings::barrier(std::string_view name) {
  const std::string go = barrier_key(name);
  const std::string left = fmt::format("{}/left", name);
  if (rank_ == 0) {
    if (Status status = await_all(name); !status.ok()) {
      return status;
    }
    if (Status status = store_.set(go, {}); !status.ok()) {
      return status;
    }
    for (Rank peer = 1; peer < nodes_; ++peer) {
      Status status = await(node_key(left, peer), peer).status();
      // All is done: a node that is lost now has left.
      if (!status.ok() && status.fault() != Fault::peer_lost) {
        return status;
      }
    }
    return {};
  }
  if (Status status = store_.set(node_key(name, rank_), {}); !status.ok()) {
    return status;
  }
  if (const auto value = await(go, 0, patience_with_node_0()); !value.ok()) {
    return value.status();
  }
  // Node 0 may be gone as soon as it has seen this, so a lost answer is no fault.
  (void)store_.set(node_key(left, rank_), {});
  return {};
}

Status Meetings::meet(Round round, std::span<const float> parameters, std::uint64_t bytes_sent,
                      const Inspect& inspect, const Visit& visit, std::span<const std::byte> note) {
  ByteBuffer value;
  value.write(bytes_sent);
  value.write(weight_);
  value.write_span(parameters);
  value.append(note);
  const std::string done = models_of(round) + "/done";
  const std::string pulse = models_of(round) + "/pulse";
  if (Status status = store_.set(node_key(models_of(round), rank_), value.bytes()); !status.ok()) {
    return status;
  }
  if (rank_ != 0) {
    return await(done, 0, patience_with_node_0(), pulse).status();
  }
  const Pulse alive(store_, pulse, std::max(timeout_ / kBeats, std::chrono::milliseconds(1)));
  if (Status status = inspect_all(round, parameters.size(), inspect, visit); !status.ok()) {
    return status;
  }
  return store_.set(done, {});
}

Status Meetings::inspect_all(Round round, std::size_t dimension, const Inspect& inspect,
                             const Visit& visit) {
  const auto model = average(round, dimension, visit);
  if (!model.ok()) {
    return model.status();
  }
  inspect(*model);
  for (Rank peer = 0; peer < nodes_; ++peer) {
    if (Status status = store_.remove(node_key(models_of(round), peer)); !status.ok()) {
      return status;
    }
  }
  return {};
}

Result<AveragedModel> Meetings::average(Round round, std::size_t dimension, const Visit& visit) {
  const auto model_of = [&](Rank peer) -> Result<Published> {
    const auto value = await(node_key(models_of(round), peer), peer);
    if (!value.ok()) {
      return value.status();
    }
    const Status place = look_at(peer);
    return place.ok() ? read_model(*value, peer, dimension) : Result<Published>(place);
  };
  const auto counts = [this](Rank peer) {
    return !std::binary_search(left_out_.begin(), left_out_.end(), peer);
  };
  const double counted = nodes_ - static_cast<int>(left_out_.size());
  AveragedModel result;
  ModelSum sum;
  double bytes = 0;
  for (Rank peer = 0; peer < nodes_; ++peer) {
    const auto model = model_of(peer);
    if (!model.ok()) {
      return model.status();
    }
    if (counts(peer)) {
      sum.add(model->parameters, model->weight);
    }
    bytes += static_cast<double>(model->bytes_sent);
    result.notes.push_back(model->note);
  }
  result.bytes_per_node = bytes / nodes_;
  result.parameters = sum.mean();
  // The models are fetched twice rather than kept: n of them may not fit.
  for (Rank peer = 0; peer < nodes_; ++peer) {
    const auto model = model_of(peer);
    if (!model.ok()) {
      return model.status();
    }
    if (counts(peer)) {
      const auto measured = [this](std::span<const float> values) {
        return values.first(std::min(values.size(), measured_));
      };
      result.consensus_distance +=
          squared_distance(measured(model->parameters), measured(result.parameters)) / counted;
    }
    if (visit) {
      visit(peer, model->parameters);
    }
  }
  return result;
}

Result<std::vector<std::vector<std::byte>>> Meetings::gather(std::string_view name,
                                                             std::span<const std::byte> value) {
  std::vector<std::vector<std::byte>> values;
  if (Status status = store_.set(node_key(name, rank_), value); !status.ok()) {
    return status;
  }
  if (rank_ != 0) {
    return values;
  }
  for (Rank peer = 0; peer < nodes_; ++peer) {
    auto one = await(node_key(name, peer), peer);
    if (!one.ok()) {
      return one.status();
    }
    values.push_back(std::move(*one));
  }
  return values;
}

Result<std::vector<std::byte>> Meetings::broadcast(std::string_view name,
                                                   std::span<const std::byte> value) {
  if (rank_ == 0) {
    if (Status status = store_.set(name, value); !status.ok()) {
      return status;
    }
    return std::vector<std::byte>(value.begin(), value.end());
  }
  return await(std::string(name), 0, patience_with_node_0());
}

}  // namespace sotto
