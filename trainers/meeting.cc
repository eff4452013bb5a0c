#include <sotto/trainers/meeting.h>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

namespace sotto {
namespace {

/// Waits for what `rank` publishes under `key`.
Result<std::vector<std::byte>> get_from(Store& store, const std::string& key, Rank rank,
                                        Deadline deadline) {
  auto value = store.get(key, deadline);
  if (!value.ok()) {
    return value.status().with_context(fmt::format("waiting for node {}", rank));
  }
  return value;
}

Status get_from_all(Store& store, std::string_view name, int nodes, Deadline deadline) {
  for (Rank peer = 1; peer < nodes; ++peer) {
    const std::string key = fmt::format("{}/{}", name, peer);
    if (const auto value = get_from(store, key, peer, deadline); !value.ok()) {
      return value.status();
    }
  }
  return {};
}

/// The bytes sent so far and the model, as published.
struct Published {
  std::uint64_t bytes_sent = 0;
  std::vector<float> parameters;
};

Result<Published> get_model(Store& store, Round round, Rank rank, std::size_t dimension,
                            Deadline deadline) {
  const auto value = get_from(store, fmt::format("model/{}/{}", round, rank), rank, deadline);
  if (!value.ok()) {
    return value.status();
  }
  ByteReader in(*value);
  Published model;
  model.parameters.resize(dimension);
  model.bytes_sent = in.read<std::uint64_t>();
  in.read_into(std::span<float>(model.parameters));
  if (!in.finished()) {
    return Status(Fault::malformed, fmt::format("the model of node {} has another length", rank));
  }
  return model;
}

double squared_distance(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double difference = double{x[k]} - double{y[k]};
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

Status barrier(Store& store, std::string_view name, Rank rank, int nodes, Deadline deadline) {
  const std::string go = fmt::format("{}/go", name);
  const std::string left = fmt::format("{}/left", name);
  if (rank == 0) {
    if (Status status = get_from_all(store, name, nodes, deadline); !status.ok()) {
      return status;
    }
    if (Status status = store.set(go, {}); !status.ok()) {
      return status;
    }
    return get_from_all(store, left, nodes, deadline);
  }
  if (Status status = store.set(fmt::format("{}/{}", name, rank), {}); !status.ok()) {
    return status;
  }
  if (const auto value = get_from(store, go, 0, deadline); !value.ok()) {
    return value.status();
  }
  // Node 0 may be gone as soon as it has seen this, so a lost answer is no fault.
  (void)store.set(fmt::format("{}/{}", left, rank), {});
  return {};
}

Status Meetings::meet(Round round, std::span<const float> parameters, std::uint64_t bytes_sent,
                      const Inspect& inspect, const Visit& visit) {
  ByteBuffer value;
  value.write(bytes_sent);
  value.write_span(parameters);
  const std::string mine = fmt::format("model/{}/{}", round, rank_);
  const std::string done = fmt::format("model/{}/done", round);
  if (Status status = store_.set(mine, value.bytes()); !status.ok()) {
    return status;
  }
  if (rank_ != 0) {
    const auto value_done = get_from(store_, done, 0, Deadline::after(2 * timeout_));
    return value_done.status();
  }
  const auto model = average(round, parameters.size(), visit);
  if (!model.ok()) {
    return model.status();
  }
  inspect(*model);
  for (Rank peer = 0; peer < nodes_; ++peer) {
    if (Status status = store_.remove(fmt::format("model/{}/{}", round, peer)); !status.ok()) {
      return status;
    }
  }
  return store_.set(done, {});
}

Result<AveragedModel> Meetings::average(Round round, std::size_t dimension, const Visit& visit) {
  const auto deadline = Deadline::after(timeout_);
  AveragedModel result;
  std::vector<double> sum(dimension, 0.0);
  double bytes = 0;
  for (Rank peer = 0; peer < nodes_; ++peer) {
    const auto model = get_model(store_, round, peer, dimension, deadline);
    if (!model.ok()) {
      return model.status();
    }
    for (std::size_t k = 0; k < dimension; ++k) {
      sum[k] += double{model->parameters[k]};
    }
    bytes += static_cast<double>(model->bytes_sent);
  }
  result.bytes_per_node = bytes / nodes_;
  for (const double total : sum) {
    result.parameters.push_back(static_cast<float>(total / nodes_));
  }
  // The models are fetched twice rather than kept: n of them may not fit.
  for (Rank peer = 0; peer < nodes_; ++peer) {
    const auto model = get_model(store_, round, peer, dimension, deadline);
    if (!model.ok()) {
      return model.status();
    }
    result.consensus_distance += squared_distance(model->parameters, result.parameters) / nodes_;
    if (visit) {
      visit(peer, model->parameters);
    }
  }
  return result;
}

Result<std::vector<std::vector<std::byte>>> Meetings::gather(std::string_view name,
                                                             std::span<const std::byte> value) {
  std::vector<std::vector<std::byte>> values;
  if (Status status = store_.set(fmt::format("{}/{}", name, rank_), value); !status.ok()) {
    return status;
  }
  if (rank_ != 0) {
    return values;
  }
  const auto deadline = Deadline::after(timeout_);
  for (Rank peer = 0; peer < nodes_; ++peer) {
    auto one = get_from(store_, fmt::format("{}/{}", name, peer), peer, deadline);
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
  return get_from(store_, std::string(name), 0, Deadline::after(2 * timeout_));
}

}  // namespace sotto
