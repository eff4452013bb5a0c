#include <sotto/trainers/meetings/model_average.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/run_keys.h>
#include <sotto/kernels/norm.h>
#include <sotto/optim/round_terms.h>
#include <sotto/trainers/model_sum.h>

namespace sotto {

namespace {

/// Beats in a timeout, many enough for a busy machine.
constexpr int kBeats = 8;

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

}  // namespace

Status ModelAverage::meet(Round round, std::span<const float> parameters, std::uint64_t bytes_sent,
                          const Inspect& inspect, const Visit& visit,
                          std::span<const std::byte> note) {
  ByteBuffer value;
  value.write(bytes_sent);
  value.write(weight_);
  value.write_span(parameters);
  value.append(note);
  const std::string done = models_of(round) + "/done";
  const std::string pulse = models_of(round) + "/pulse";
  if (Status status =
          collectives_.store().set(node_key(models_of(round), collectives_.rank()), value.bytes());
      !status.ok()) {
    return status;
  }
  if (collectives_.rank() != 0) {
    return collectives_.await_node_0(done, pulse).status();
  }
  const Pulse alive(collectives_.store(), pulse,
                    std::max(collectives_.timeout() / kBeats, std::chrono::milliseconds(1)));
  if (Status status = inspect_all(round, parameters.size(), inspect, visit); !status.ok()) {
    return status;
  }
  return collectives_.store().set(done, {});
}

Status ModelAverage::inspect_all(Round round, std::size_t dimension, const Inspect& inspect,
                                 const Visit& visit) {
  const auto model = average(round, dimension, visit);
  if (!model.ok()) {
    return model.status();
  }
  inspect(*model);
  for (Rank peer = 0; peer < collectives_.nodes(); ++peer) {
    if (Status status = collectives_.store().remove(node_key(models_of(round), peer));
        !status.ok()) {
      return status;
    }
  }
  return {};
}

Result<AveragedModel> ModelAverage::average(Round round, std::size_t dimension,
                                            const Visit& visit) {
  const auto model_of = [&](Rank peer) -> Result<Published> {
    const auto value = collectives_.await(node_key(models_of(round), peer), peer);
    if (!value.ok()) {
      return value.status();
    }
    const Status place = collectives_.look_at(peer);
    return place.ok() ? read_model(*value, peer, dimension) : Result<Published>(place);
  };
  const auto counts = [this](Rank peer) {
    return !std::binary_search(left_out_.begin(), left_out_.end(), peer);
  };
  const double counted = collectives_.nodes() - static_cast<int>(left_out_.size());
  AveragedModel result;
  ModelSum sum;
  double bytes = 0;
  for (Rank peer = 0; peer < collectives_.nodes(); ++peer) {
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
  result.bytes_per_node = bytes / collectives_.nodes();
  result.parameters = sum.mean();
  // The models are fetched twice rather than kept: n of them may not fit.
  for (Rank peer = 0; peer < collectives_.nodes(); ++peer) {
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

}  // namespace sotto
