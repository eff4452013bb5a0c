#include "stream.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <Eigen/Dense>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/trainers/data/partition.h>
#include <sotto/trainers/data/sampler.h>
#include <sotto/trainers/tasks/model.h>

namespace sotto::bench {
namespace {

/// Streams of random numbers beside those of the partitions.
enum Bucket : std::uint32_t { parts = 100, places = 101, random_order = 102 };

/// The rows of two sets, one behind the other.
class Joined final : public Examples {
 public:
  explicit Joined(std::shared_ptr<const Dataset> data)
      : Examples(data->features(), labels_of(*data)), data_(std::move(data)) {}

  void copy_row(std::size_t row, std::span<float> out) const override {
    const std::size_t first = data_->train().size();
    if (row < first) {
      data_->train().copy_row(row, out);
    } else {
      data_->test().copy_row(row - first, out);
    }
  }

 private:
  static std::vector<std::int32_t> labels_of(const Dataset& data) {
    const auto train = data.train().labels();
    const auto test = data.test().labels();
    std::vector<std::int32_t> labels(train.begin(), train.end());
    labels.insert(labels.end(), test.begin(), test.end());
    return labels;
  }

  std::shared_ptr<const Dataset> data_;
};

template <typename T>
void shuffle(std::vector<T>& values, std::uint64_t seed, Bucket bucket) {
  RandomStream random({.seed = seed, .purpose = Purpose::partition, .bucket = bucket});
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(i)]);
  }
}

using Shards = std::vector<std::vector<std::uint32_t>>;

/// Deals `rows` out by `partition`, to nodes in a random order, behind what they have.
void deal(std::span<const std::uint32_t> rows, const Dataset& pool, const std::string& partition,
          std::uint64_t seed, Shards& shards) {
  if (rows.empty()) {
    return;
  }
  std::vector<std::int32_t> labels;
  for (const std::uint32_t row : rows) {
    labels.push_back(pool.train().labels()[row]);
  }
  const Shards parts = partition_examples(labels, pool.classes(), static_cast<int>(shards.size()),
                                          parse_partition(partition), seed);
  std::vector<std::size_t> node(shards.size());
  std::iota(node.begin(), node.end(), std::size_t{0});
  shuffle(node, seed, places);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    for (const std::uint32_t at : parts[k]) {
      shards[node[k]].push_back(rows[at]);
    }
  }
}

/// Mean logistic loss, its gradient and its Hessian; a column of `x` is an example, with a 1 at the
/// end, times its label ±1.
class Logistic {
 public:
  explicit Logistic(Eigen::MatrixXd x) : x_(std::move(x)) {}

  double loss(const Eigen::VectorXd& w) const {
    return (x_.transpose() * w).unaryExpr(&minus_log_sigmoid).mean();
  }

  /// Newton's step, damped by the little that a singular Hessian needs; returns the squared
  /// decrement.
  double step(const Eigen::VectorXd& w, Eigen::VectorXd& step) const {
    constexpr double kDamping = 1e-9;
    const auto n = static_cast<double>(x_.cols());
    const Eigen::ArrayXd p = 1 / (1 + (x_.transpose() * w).array().exp());
    const Eigen::VectorXd gradient = -(x_ * p.matrix()) / n;
    const Eigen::MatrixXd scaled = x_ * (p * (1 - p)).sqrt().matrix().asDiagonal();
    Eigen::MatrixXd hessian = Eigen::MatrixXd::Zero(x_.rows(), x_.rows());
    hessian.selfadjointView<Eigen::Lower>().rankUpdate(scaled, 1 / n);
    hessian.diagonal().array() += kDamping;
    step = -hessian.selfadjointView<Eigen::Lower>().ldlt().solve(gradient);
    return -gradient.dot(step);
  }

 private:
  static double minus_log_sigmoid(double margin) {
    return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
  }

  Eigen::MatrixXd x_;
};

double minimum(const Logistic& logistic, Eigen::Index dimension) {
  constexpr double kTolerance = 1e-10;
  constexpr int kSteps = 100;
  constexpr double kArmijo = 0.25;
  Eigen::VectorXd w = Eigen::VectorXd::Zero(dimension);
  Eigen::VectorXd step;
  double loss = logistic.loss(w);
  for (int k = 0; k < kSteps; ++k) {
    const double decrement = logistic.step(w, step);
    if (decrement / 2 < kTolerance) {
      return loss;
    }
    double length = 1;
    double next = logistic.loss(w + step);
    while (next > loss - kArmijo * length * decrement && length > 1e-6) {
      length /= 2;
      next = logistic.loss(w + length * step);
    }
    w += length * step;
    loss = next;
  }
  refuse("data", "the stream", "logistic regression did not converge on it in 100 Newton steps");
}

}  // namespace

std::shared_ptr<const Dataset> pooled(const std::shared_ptr<const Dataset>& data) {
  if (data->classes() != 2) {
    refuse("data", data->name(),
           fmt::format("it has {} classes, and this needs 2", data->classes()));
  }
  std::vector<float> row(data->features());
  data->test().copy_row(0, row);
  auto rest = std::make_unique<DenseExamples>(data->features(), std::move(row),
                                              std::vector<std::int32_t>{data->test().labels()[0]});
  return std::make_shared<const Dataset>(data->name(), data->classes(),
                                         std::make_unique<Joined>(data), std::move(rest));
}

Stream::Stream(std::shared_ptr<const Dataset> pool, const StreamOptions& options)
    : pool_(std::move(pool)), options_(options) {
  if (options.nodes < 1) {
    refuse("nodes", fmt::to_string(options.nodes), "at least 1 is needed");
  }
  if (options.batch < 1) {
    refuse("batch", "0", "at least 1 is needed");
  }
  if (!(options.adversarial >= 0 && options.adversarial <= 1)) {
    refuse("adversarial", fmt::to_string(options.adversarial), "it is a fraction, 0 to 1");
  }
  shards_.resize(static_cast<std::size_t>(options.nodes));
  std::vector<std::uint32_t> rows(pool_->train().size());
  std::iota(rows.begin(), rows.end(), 0U);
  shuffle(rows, options.seed, parts);
  const auto cut = static_cast<std::size_t>(
      std::llround(options.adversarial * static_cast<double>(rows.size())));
  deal(std::span(rows).first(cut), *pool_, options.unlike, options.seed, shards_);
  deal(std::span(rows).subspan(cut), *pool_, "iid", options.seed, shards_);
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const auto& shard : shards_) {
    fewest = std::min(fewest, shard.size());
  }
  rounds_ = fewest / options.batch;
  if (rounds_ == 0) {
    refuse("nodes", fmt::to_string(options.nodes),
           fmt::format("{} examples are not a round for all of them", rows.size()));
  }
}

std::unique_ptr<SupervisedTask> Stream::task(Rank rank) const {
  return std::make_unique<SupervisedTask>(
      pool_, make_model("softmax", {.features = pool_->features(), .classes = 2}),
      Sampler(shards_[static_cast<std::size_t>(rank)], options_.batch, options_.seed, rank),
      options_.batch * static_cast<std::size_t>(nodes()));
}

double Stream::best_fixed_loss() const {
  const std::size_t features = pool_->features();
  const auto dimension = static_cast<Eigen::Index>(features + 1);
  const auto count = static_cast<Eigen::Index>(rounds_ * options_.batch * shards_.size());
  Eigen::MatrixXd x(dimension, count);
  std::vector<float> row(features);
  Eigen::Index column = 0;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    Sampler sampler(shards_[i], options_.batch, options_.seed, static_cast<Rank>(i));
    for (Round round = 0; round < rounds_; ++round) {
      for (const std::uint32_t example : sampler.batch(round)) {
        pool_->train().copy_row(example, row);
        const double sign = pool_->train().labels()[example] == 1 ? 1 : -1;
        for (std::size_t k = 0; k < features; ++k) {
          x(static_cast<Eigen::Index>(k), column) = sign * static_cast<double>(row[k]);
        }
        x(dimension - 1, column) = sign;
        ++column;
      }
    }
  }
  return minimum(Logistic(std::move(x)), dimension);
}

}  // namespace sotto::bench
