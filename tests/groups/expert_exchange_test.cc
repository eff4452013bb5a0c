#include <sotto/groups/programs/expert_exchange.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/groups/program.h>
#include <sotto/groups/vector_collective.h>

#include "in_exchange.h"

namespace sotto::test::expert_exchange_test {

namespace {

constexpr std::uint64_t kSeed = 5'011;

/// N(0, scale) of a purpose of its own.
std::vector<float> normals(std::size_t count, std::uint32_t which, double scale) {
  RandomStream stream({.seed = kSeed, .purpose = Purpose::test, .bucket = which});
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(scale * stream.normal());
  }
  return values;
}

/// C ← A B, or with transposed A or B; every element is a sum in order.
struct Matrix {
  std::span<const float> values;
  std::size_t columns;
  bool transposed = false;

  float at(std::size_t i, std::size_t j) const {
    return transposed ? values[j * columns + i] : values[i * columns + j];
  }
};

std::vector<float> product(const Matrix& a, const Matrix& b, std::size_t rows, std::size_t inner,
                           std::size_t columns) {
  std::vector<float> c(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t k = 0; k < inner; ++k) {
        c[i * columns + j] += a.at(i, k) * b.at(k, j);
      }
    }
  }
  return c;
}

constexpr std::size_t kWidth = 6;
constexpr std::size_t kHidden = 5;

/// relu(x A) B, with its gradients.
struct Expert {
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> hidden = {};
  std::vector<float> da = {};
  std::vector<float> db = {};

  std::vector<float> forward(std::span<const float> x) {
    const std::size_t rows = x.size() / kWidth;
    hidden = product({x, kWidth}, {a, kHidden}, rows, kWidth, kHidden);
    for (float& value : hidden) {
      value = std::max(value, 0.0F);
    }
    return product({hidden, kHidden}, {b, kWidth}, rows, kHidden, kWidth);
  }
  std::vector<float> backward(std::span<const float> x, std::span<const float> dy) {
    const std::size_t rows = x.size() / kWidth;
    db = product({hidden, kHidden, true}, {dy, kWidth}, kHidden, rows, kWidth);
    auto dhidden = product({dy, kWidth}, {b, kWidth, true}, rows, kWidth, kHidden);
    for (std::size_t i = 0; i < dhidden.size(); ++i) {
      dhidden[i] = hidden[i] > 0 ? dhidden[i] : 0;
    }
    da = product({x, kWidth, true}, {dhidden, kHidden}, kWidth, rows, kHidden);
    return product({dhidden, kHidden}, {a, kHidden, true}, rows, kHidden, kWidth);
  }
};

/// A whole layer, as all tests have it: tokens of all nodes, experts of all nodes, and the gate.
struct Layer {
  std::size_t tokens = 16;  ///< of all nodes
  ExpertOptions options = {.experts = 8, .width = kWidth, .gate = "top:2", .capacity = 0};
  std::vector<float> x = normals(16 * kWidth, 1, 1);
  std::vector<float> gate = normals(kWidth * 8, 2, 0.7);
  std::vector<Expert> experts = {};
  std::vector<float> target = normals(16 * kWidth, 3, 1);
  bool identity = false;  ///< experts that give their rows back

  Layer() {
    for (std::uint32_t e = 0; e < 8; ++e) {
      experts.push_back({.a = normals(kWidth * kHidden, 10 + e, 0.6),
                         .b = normals(kHidden * kWidth, 30 + e, 0.6)});
    }
  }
};

/// What a node counted.
struct Counts {
  std::size_t sent = 0;
  std::size_t away = 0;  ///< of them to other nodes
  std::size_t dropped = 0;
};

/// What came of a layer, in the order of all tokens and experts.
struct LayerResult {
  std::vector<float> y;
  std::vector<float> dx;
  std::vector<float> dscores;
  std::vector<std::vector<float>> da;  ///< by expert
  std::vector<std::vector<float>> db;
  std::vector<Counts> counts;  ///< by node
  std::size_t sent = 0;
  std::size_t away = 0;
  std::size_t dropped = 0;
};

/// A node's part: L = ½ Σ ‖y − target‖².
class LayerProgram final : public Program {
 public:
  LayerProgram(const ProgramNode& node, const Layer& layer, LayerResult& result)
      : node_(node),
        layer_(layer),
        result_(result),
        p_(static_cast<std::size_t>(node.grid().nodes())),
        own_tokens_(layer.tokens / p_),
        exchange_(node.member("expert"), with_tokens(layer.options, own_tokens_)) {
    const auto stage = [this](const char* name, Collective* collective, auto compute) {
      stages_.push_back(
          {name, [compute](const RoundInput&) -> Status { return compute(); }, collective, 0});
    };
    stage("dispatch", &exchange_.dispatching(), [this] { return dispatch(); });
    stage("experts", &exchange_.combining(), [this] { return forward(); });
    stage("gradient", &exchange_.dispatching_gradient(), [this] { return loss(); });
    stage("experts back", &exchange_.combining_gradient(), [this] { return backward(); });
    stage("finish", nullptr, [this] { return finish(); });
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

 private:
  static ExpertOptions with_tokens(ExpertOptions options, std::size_t tokens) {
    options.tokens = tokens;
    return options;
  }
  template <typename T>
  std::span<T> own(std::vector<T>& all) const {
    const std::size_t each = all.size() / p_;
    return std::span(all).subspan(static_cast<std::size_t>(node_.rank()) * each, each);
  }
  std::size_t expert(std::size_t e) const { return exchange_.first_expert() + e; }

  Status dispatch() {
    const std::size_t e = layer_.options.experts;
    scores_ = product({own(layer_.x), kWidth}, {layer_.gate, e}, own_tokens_, kWidth, e);
    return exchange_.dispatch(own(layer_.x), scores_);
  }
  Status forward() {
    exchange_.arrive();
    for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
      const auto rows = exchange_.rows(e);
      if (layer_.identity) {
        std::ranges::copy(rows, exchange_.results(e).begin());
      } else {
        std::ranges::copy(layer_.experts[expert(e)].forward(rows), exchange_.results(e).begin());
      }
    }
    exchange_.combine();
    return {};
  }
  Status loss() {
    if (Status status = exchange_.finish(own(result_.y)); !status.ok()) {
      return status;
    }
    std::vector<float> dy(own_tokens_ * kWidth);
    host_ops().subtract(own(result_.y), own(layer_.target), dy);
    exchange_.dispatch_gradient(dy);
    return {};
  }
  Status backward() {
    if (Status status = exchange_.arrive_gradient(); !status.ok()) {
      return status;
    }
    for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
      Expert& one = layer_.experts[expert(e)];
      const auto dy = exchange_.result_gradient(e);
      const auto dx = layer_.identity ? std::vector<float>(dy.begin(), dy.end())
                                      : one.backward(exchange_.rows(e), dy);
      std::ranges::copy(dx, exchange_.row_gradient(e).begin());
      result_.da[expert(e)] = one.da;
      result_.db[expert(e)] = one.db;
    }
    exchange_.combine_gradient();
    return {};
  }
  Status finish() {
    Counts& counts = result_.counts[static_cast<std::size_t>(node_.rank())];
    counts = {.sent = 0, .away = 0, .dropped = exchange_.dropped()};
    for (std::size_t e = 0; e < exchange_.sent().size(); ++e) {
      counts.sent += exchange_.sent()[e];
      const bool own =
          e >= exchange_.first_expert() && e < exchange_.first_expert() + exchange_.own_experts();
      counts.away += own ? 0U : exchange_.sent()[e];
    }
    return exchange_.finish_gradient(own(result_.dx), own(result_.dscores));
  }

  ProgramNode node_;
  Layer layer_;
  LayerResult& result_;
  std::size_t p_;
  std::size_t own_tokens_;
  ExpertExchange exchange_;
  std::vector<ProgramStage> stages_;
  std::vector<float> scores_;
};

LayerResult empty_result(const Layer& layer) {
  LayerResult result;
  result.y.resize(layer.x.size());
  result.dx.resize(layer.x.size());
  result.dscores.resize(layer.tokens * layer.options.experts);
  result.da.resize(layer.options.experts);
  result.db.resize(layer.options.experts);
  result.counts.resize(layer.tokens);
  return result;
}

/// One round of a layer; threads write to different places of the result.
ProgramJob layer_job(const Layer& layer, int nodes, LayerResult& result) {
  ProgramJob job{.nodes = nodes,
                 .grid = "expert=" + std::to_string(nodes),
                 .dimension = 1,
                 .rounds = 1,
                 .seed = kSeed,
                 .build = {}};
  job.build = [layer, &result](const ProgramNode& node) {
    return std::make_unique<LayerProgram>(node, layer, result);
  };
  return job;
}

/// One round of a layer among `nodes` nodes.
LayerResult run(const Layer& layer, int nodes, const std::string& driver = "eager",
                std::uint64_t* bytes = nullptr) {
  LayerResult result = empty_result(layer);
  const ProgramRun ran = ProgramRunner(layer_job(layer, nodes, result)).run(driver);
  for (const Status& status : ran.statuses) {
    CAPTURE(status.message());
    REQUIRE(status.ok());
  }
  for (const Counts& counts : result.counts) {
    result.sent += counts.sent;
    result.away += counts.away;
    result.dropped += counts.dropped;
  }
  for (const auto& [edge, traffic] : ran.traffic) {
    if (bytes != nullptr) {
      *bytes += traffic.bytes;
    }
  }
  return result;
}

bool same(const LayerResult& a, const LayerResult& b) {
  return same_bits(a.y, b.y) && same_bits(a.dx, b.dx) && same_bits(a.dscores, b.dscores) &&
         a.da == b.da && a.db == b.db;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

/// L in double precision, with the experts that float chose.
double loss_of(const Layer& layer, std::span<const std::uint32_t> chosen) {
  const std::size_t experts = layer.options.experts;
  const ExpertGate gate(layer.options.gate, experts);
  const std::size_t k = gate.choices();
  const bool prototypes = layer.options.gate.starts_with("prototypes");
  double loss = 0;
  for (std::size_t t = 0; t < layer.tokens; ++t) {
    std::vector<double> powers(experts);
    for (std::size_t e = 0; e < experts; ++e) {
      double score = 0;
      for (std::size_t i = 0; i < kWidth; ++i) {
        score += static_cast<double>(layer.x[t * kWidth + i]) *
                 static_cast<double>(layer.gate[i * experts + e]);
      }
      powers[e] = std::exp(score);
    }
    std::vector<double> y(kWidth);
    for (std::size_t j = 0; j < k; ++j) {
      const std::size_t own = chosen[t * k + j];
      double sum = 0;
      for (std::size_t i = 0; i < (prototypes ? experts / k : k); ++i) {
        sum += powers[prototypes ? j * (experts / k) + i : chosen[t * k + i]];
      }
      const Expert& expert = layer.experts[own];
      for (std::size_t m = 0; m < kHidden; ++m) {
        double hidden = 0;
        for (std::size_t i = 0; i < kWidth; ++i) {
          hidden += static_cast<double>(layer.x[t * kWidth + i]) *
                    static_cast<double>(expert.a[i * kHidden + m]);
        }
        for (std::size_t i = 0; i < kWidth; ++i) {
          y[i] += powers[own] / sum * std::max(hidden, 0.0) *
                  static_cast<double>(expert.b[m * kWidth + i]);
        }
      }
    }
    for (std::size_t i = 0; i < kWidth; ++i) {
      loss += 0.5 * std::pow(y[i] - static_cast<double>(layer.target[t * kWidth + i]), 2);
    }
  }
  return loss;
}

std::vector<std::uint32_t> chosen_by(const Layer& layer) {
  const std::size_t e = layer.options.experts;
  const ExpertGate gate(layer.options.gate, e);
  const auto scores = product({layer.x, kWidth}, {layer.gate, e}, layer.tokens, kWidth, e);
  std::vector<std::uint32_t> chosen(layer.tokens * gate.choices());
  std::vector<float> weights(chosen.size());
  gate.choose(scores, chosen, weights);
  return chosen;
}

/// Checks `gradient` of `value`, which is a part of `layer`, by central differences.
void check_gradient(Layer& layer, std::vector<float>& value, std::span<const float> gradient) {
  REQUIRE(value.size() == gradient.size());
  const auto chosen = chosen_by(layer);
  double largest = 0;
  for (const float g : gradient) {
    largest = std::max(largest, std::abs(static_cast<double>(g)));
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const float at = value[i];
    const float step = 1e-3F;
    value[i] = at + step;
    const double above = loss_of(layer, chosen);
    const double up = static_cast<double>(value[i]);
    value[i] = at - step;
    const double below = loss_of(layer, chosen);
    const double difference = (above - below) / (up - static_cast<double>(value[i]));
    value[i] = at;
    CHECK(std::abs(difference - static_cast<double>(gradient[i])) < 1e-3 * largest + 1e-6);
  }
}

}  // namespace

TEST_CASE("a layer of experts gives the same bits on 1, 2, 4 and 8 nodes, in every driver") {
  CAPTURE(kSeed);
  for (const char* gate : {"top:1", "top:2", "prototypes:2", "prototypes:4"}) {
    CAPTURE(gate);
    Layer layer;
    layer.options.gate = gate;
    const LayerResult alone = run(layer, 1);
    for (const int p : {2, 4, 8}) {
      CAPTURE(p);
      CHECK(same(run(layer, p), alone));
    }
    for (const std::string& driver : drivers()) {
      CAPTURE(driver);
      CHECK(same(run(layer, 4, driver), alone));
    }
  }
}

TEST_CASE("compressed rows give the same bits in every driver, near those of exact ones") {
  CAPTURE(kSeed);
  Layer layer;
  const LayerResult exact = run(layer, 4);
  layer.options.compressor = "quant:8";
  layer.options.gradient_compressor = "quant:8";
  const LayerResult eager = run(layer, 4);
  CHECK(!same_bits(eager.y, exact.y));
  CHECK(largest_difference(eager.y, exact.y) < 0.05);
  for (const std::string& driver : drivers()) {
    CAPTURE(driver);
    CHECK(same(run(layer, 4, driver), eager));
  }
}

TEST_CASE("identity experts with weight 1 give the tokens back, to the bit") {
  CAPTURE(kSeed);
  Layer layer;
  layer.options.gate = "top:1";
  layer.identity = true;
  for (const int p : {1, 4}) {
    CHECK(same_bits(run(layer, p).y, layer.x));
  }
}

TEST_CASE("equal experts are the dense layer, and their gate has no gradient") {
  CAPTURE(kSeed);
  for (const char* gate : {"top:1", "top:2", "top:8"}) {
    Layer layer;
    layer.options.gate = gate;
    std::ranges::fill(layer.experts, layer.experts[0]);
    const LayerResult result = run(layer, 4);
    Expert dense = layer.experts[0];
    CHECK(largest_difference(result.y, dense.forward(layer.x)) < 2e-6);
    for (const float g : result.dscores) {
      CHECK(std::abs(g) < 2e-5F);  // 2⁻²⁴ of ⟨dy, row⟩, of some tens
    }
  }
}

TEST_CASE("one expert at one node is the plain layer, to the bit but for the sign of zeros") {
  CAPTURE(kSeed);
  Layer layer;
  layer.options.experts = 1;
  layer.options.gate = "top:1";
  layer.gate.resize(kWidth);
  Expert dense = layer.experts[0];
  CHECK(run(layer, 1).y == dense.forward(layer.x));
}

TEST_CASE("as many prototypes as experts sum all experts, with weight 1") {
  CAPTURE(kSeed);
  Layer layer;
  layer.options.gate = "prototypes:8";
  const LayerResult result = run(layer, 4);
  std::vector<float> sum(layer.x.size());
  for (Expert& expert : layer.experts) {
    host_ops().axpy(1, expert.forward(layer.x), sum);
  }
  CHECK(result.y == sum);
}

TEST_CASE("gradients of tokens, gate and experts are those of finite differences") {
  CAPTURE(kSeed);
  for (const char* gate : {"top:1", "top:2", "prototypes:2"}) {
    CAPTURE(gate);
    Layer layer;
    layer.options.gate = gate;
    const LayerResult result = run(layer, 4);
    const std::size_t e = layer.options.experts;
    const auto dgate =
        product({layer.x, kWidth, true}, {result.dscores, e}, kWidth, layer.tokens, e);
    auto dx = product({result.dscores, e}, {layer.gate, e, true}, layer.tokens, e, kWidth);
    host_ops().axpy(1, result.dx, dx);
    check_gradient(layer, layer.gate, dgate);
    check_gradient(layer, layer.x, dx);
    for (std::size_t i = 0; i < e; ++i) {
      check_gradient(layer, layer.experts[i].a, result.da[i]);
      check_gradient(layer, layer.experts[i].b, result.db[i]);
    }
  }
}

TEST_CASE("tokens in another order give outputs in that order, where none is dropped") {
  CAPTURE(kSeed);
  Layer layer;
  const LayerResult before = run(layer, 4);
  std::vector<std::size_t> order(layer.tokens);
  std::iota(order.begin(), order.end(), std::size_t{0});
  RandomStream stream({.seed = kSeed, .purpose = Purpose::shuffle});
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[stream.below(i)]);
  }
  Layer shuffled = layer;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::copy_n(layer.x.begin() + static_cast<std::ptrdiff_t>(order[i] * kWidth), kWidth,
                shuffled.x.begin() + static_cast<std::ptrdiff_t>(i * kWidth));
  }
  const LayerResult after = run(shuffled, 4);
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(same_bits(std::span(after.y).subspan(i * kWidth, kWidth),
                    std::span(before.y).subspan(order[i] * kWidth, kWidth)));
  }
}

TEST_CASE("every choice is sent or dropped, and what is dropped depends on the scores alone") {
  CAPTURE(kSeed);
  for (const char* gate : {"top:1", "top:2", "prototypes:4"}) {
    for (const double capacity : {0.0, 0.25, 1.0, 1.25}) {
      CAPTURE(gate);
      CAPTURE(capacity);
      Layer layer;
      layer.options.gate = gate;
      layer.options.capacity = capacity;
      const LayerResult result = run(layer, 4);
      const std::size_t k = ExpertGate(gate, 8).choices();
      CHECK(result.sent + result.dropped == k * layer.tokens);
      CHECK((capacity > 0 || result.dropped == 0));
      for (const std::string& driver : drivers()) {
        CHECK(same(run(layer, 4, driver), result));
      }
    }
  }
}

TEST_CASE("a layer carries four times its rows for other nodes, their counts and headers") {
  CAPTURE(kSeed);
  for (const char* compressor : {"none", "fp16"}) {
    Layer layer;
    layer.options.compressor = compressor;
    std::uint64_t bytes = 0;
    const LayerResult result = run(layer, 4, "eager", &bytes);
    const std::size_t activations = kWidth * (layer.options.compressor == "none" ? 4 : 2);
    CHECK(bytes == 4 * 12 * (64 + 2 * 2) + result.away * (2 * activations + 2 * kWidth * 4));
  }
}

TEST_CASE("an exchange sends less than averaging its experts for T/p < 4 h E / k tokens a node") {
  constexpr std::size_t kH = 16;
  constexpr std::size_t kExperts = 8;
  ProgramJob job{.nodes = 4, .grid = "expert=4", .dimension = 1, .build = {}};
  for (const std::size_t k : {1U, 2U}) {
    const std::size_t even = 4 * kH * kExperts / k;
    for (const std::size_t tokens : {even * 3 / 4, even * 5 / 4}) {
      CAPTURE(k);
      CAPTURE(tokens);
      job.build = [&](const ProgramNode& node) -> std::unique_ptr<Program> {
        const GroupMember member = node.member("expert");
        // Every expert gets as many; four such exchanges are a step.
        const std::size_t each = k * tokens / kExperts;
        const AllToAll rows(member, {.width = kH, .slots = kExperts / 4, .capacity = each},
                            {.data = Carried::activation});
        const std::uint64_t exchanged = 4 * rows.volume().all_sent().bytes;
        const auto mean = make_all_reduce(member, {.elements = 8 * kH * kH * kExperts});
        CHECK((exchanged < mean->volume().all_sent().bytes) == (tokens < even));
        return std::make_unique<ListProgram>();
      };
      ProgramRunner(job).algorithm(0);
    }
  }
}

TEST_CASE("a member that sends other rows back than it got is named") {
  CAPTURE(kSeed);
  Layer layer;
  layer.options.capacity = 1;
  LayerResult result = empty_result(layer);
  ProgramJob job = layer_job(layer, 2, result);
  // The way back of results, of the gradients' rows, and the way of gradients to the experts.
  for (const std::size_t number : {1U, 2U, 3U}) {
    CAPTURE(number);
    InExchange nodes(job, number);
    OtherFrames frames(nodes.exchanges[0]);
    Bytes payload = payload_of(frames.right(0));
    std::size_t slot = 0;
    while (payload[2 * slot] == std::byte{0}) {
      ++slot;
    }
    payload[2 * slot] = static_cast<std::byte>(std::to_integer<int>(payload[2 * slot]) - 1);
    payload.resize(payload.size() - kWidth * sizeof(float));
    frames.show(0, with_payload(frames.right(0), payload, 1));
    const Status status = nodes.nodes[0]->complete(frames.exchange());
    CAPTURE(status.message());
    CHECK(status.fault() == Fault::unexpected);
    CHECK(status.message().find("node 1 sent") != std::string::npos);
  }
}

TEST_CASE("an expert's capacity is f k T / E rounded up, as decimal figures have it") {
  ProgramJob job{.nodes = 1, .grid = "expert=1", .dimension = 1, .build = {}};
  job.build = [](const ProgramNode& node) -> std::unique_ptr<Program> {
    for (std::size_t tenths = 1; tenths <= 30; ++tenths) {
      for (const std::size_t tokens : {1U, 7U, 100U, 640U, 1000U}) {
        for (const std::size_t experts : {2U, 8U, 10U, 14U}) {
          for (const std::size_t choices : {1U, 2U}) {
            const ExpertExchange exchange(node.member("expert"),
                                          {.experts = experts,
                                           .width = 1,
                                           .tokens = tokens,
                                           .gate = choices == 1 ? "top:1" : "top:2",
                                           .capacity = static_cast<double>(tenths) / 10});
            const std::size_t due = (tenths * choices * tokens + 10 * experts - 1) / (10 * experts);
            CAPTURE(tenths);
            CAPTURE(tokens);
            CAPTURE(experts);
            CHECK(exchange.capacity() == std::min(tokens, due));
          }
        }
      }
    }
    return std::make_unique<ListProgram>();
  };
  (void)ProgramRunner(job).algorithm(0);
}

TEST_CASE("by one choice an expert's capacity is f T / E whatever k is") {
  CAPTURE(kSeed);
  for (const char* gate : {"top:1", "top:2", "prototypes:2", "prototypes:4"}) {
    for (const double capacity : {0.5, 1.0, 1.25}) {
      for (const int p : {1, 4}) {
        CAPTURE(gate);
        CAPTURE(capacity);
        CAPTURE(p);
        const auto k = static_cast<double>(ExpertGate(gate, 8).choices());
        Layer by_one;
        by_one.options.gate = gate;
        by_one.options.capacity = capacity;
        by_one.options.capacity_by = CapacityBy::one;
        Layer by_choices = by_one;
        by_choices.options.capacity_by = CapacityBy::choices;
        by_choices.options.capacity = capacity / k;  // as much room by the other rule
        const LayerResult result = run(by_one, p);
        CHECK(same(result, run(by_choices, p)));
        const double room = std::ceil(capacity * 16 / p / 8);
        CHECK(static_cast<double>(result.sent) <= p * 8 * room);
        CHECK(static_cast<double>(result.sent + result.dropped) == k * 16);
        by_choices.options.capacity = capacity;
        CHECK(run(by_choices, p).dropped <= result.dropped);
      }
    }
  }
}

TEST_CASE("room goes to first choices in the order of tokens, then to second ones") {
  ProgramJob job{.nodes = 1, .grid = "expert=1", .dimension = 1, .build = {}};
  job.build = [](const ProgramNode& node) -> std::unique_ptr<Program> {
    // Three tokens, two experts, both for each token: capacity ⌈0.6 · 2 · 3 / 2⌉ = 2.
    ExpertExchange exchange(
        node.member("expert"),
        {.experts = 2, .width = 1, .tokens = 3, .gate = "top:2", .capacity = 0.6});
    CHECK(exchange.capacity() == 2);
    const std::vector<float> x = {1, 2, 4};
    const std::vector<float> scores = {0, 5, 1, 0, 0, 5};  // first choices 1, 0, 1
    REQUIRE(exchange.dispatch(x, scores).ok());
    CHECK(exchange.dropped() == 2);
    CHECK(std::ranges::equal(exchange.sent(), std::vector<std::uint16_t>{2, 2}));
    exchange.arrive();
    // Expert 0: token 1 by its first choice, then token 0 by its second, in the order of tokens.
    CHECK(std::ranges::equal(exchange.rows(0), std::vector<float>{1, 2}));
    CHECK(std::ranges::equal(exchange.rows(1), std::vector<float>{1, 4}));
    for (const std::size_t e : {0U, 1U}) {
      std::ranges::copy(exchange.rows(e), exchange.results(e).begin());
    }
    exchange.combine();
    std::vector<float> y(3);
    REQUIRE(exchange.finish(y).ok());
    // The second choice of token 1 is dropped, and its weight is not given to the first.
    CHECK(y[0] == doctest::Approx(1));
    CHECK(y[1] == doctest::Approx(2 / (1 + std::exp(-1.0))));
    CHECK(y[2] == doctest::Approx(4 / (1 + std::exp(-5.0))));
    return std::make_unique<ListProgram>();
  };
  ProgramRunner(job).algorithm(0);
}

TEST_CASE("layers that cannot be are refused") {
  const auto refused = [](const ExpertOptions& options, int nodes = 2) {
    ProgramJob job{
        .nodes = nodes, .grid = "expert=" + std::to_string(nodes), .dimension = 1, .build = {}};
    job.build = [&](const ProgramNode& node) -> std::unique_ptr<Program> {
      const ExpertExchange exchange(node.member("expert"), options);
      return std::make_unique<ListProgram>();
    };
    std::string field;
    try {
      ProgramRunner(job).algorithm(0);
    } catch (const Error& error) {
      field = error.field();
    }
    return field;
  };
  CHECK(refused({.experts = 3}) == "experts");
  CHECK(refused({.experts = 4, .gate = "top:5"}) == "gate");
  CHECK(refused({.experts = 4, .gate = "top"}) == "gate");
  CHECK(refused({.experts = 4, .gate = "prototypes:3"}) == "gate");
  CHECK(refused({.experts = 4, .gate = "switch:1"}) == "gate");
  CHECK(refused({.experts = 4, .capacity = -1}) == "capacity");
  CHECK(refused({.experts = 4, .tokens = 0}) == "tokens");
  CHECK(refused({.experts = 4, .tokens = 70'000, .capacity = 0}) == "tokens");
  CHECK(refused({.experts = 4, .compressor = "sign"}) == "compressor");
  CHECK(refused({.experts = 4, .gradient_compressor = "quant:4"}) == "compressor");
  CHECK(refused({.experts = 4}).empty());
}

TEST_CASE(
    "the balance loss is 1 where tokens are spread evenly, and its gradient that of differences") {
  CAPTURE(kSeed);
  constexpr std::size_t kExperts = 4;
  const ExpertGate gate("top:1", kExperts);
  auto scores = normals(12 * kExperts, 77, 1);
  std::vector<std::uint32_t> chosen(12);
  std::vector<float> weights(12);
  gate.choose(scores, chosen, weights);
  std::vector<float> gradient(scores.size());
  add_balance_gradient(scores, chosen, kExperts, 1, gradient);
  std::vector<float> ignored(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const float at = scores[i];
    scores[i] = at + 0.01F;
    const double above = add_balance_gradient(scores, chosen, kExperts, 0, ignored);
    scores[i] = at - 0.01F;
    const double below = add_balance_gradient(scores, chosen, kExperts, 0, ignored);
    scores[i] = at;
    CHECK((above - below) / 0.02 ==
          doctest::Approx(static_cast<double>(gradient[i])).epsilon(1e-2));
  }
  const std::vector<float> even(kExperts * kExperts, 0.5F);
  const std::vector<std::uint32_t> each = {0, 1, 2, 3};
  std::vector<float> none(even.size());
  CHECK(add_balance_gradient(even, each, kExperts, 1, none) == doctest::Approx(1));
  // Equal scores go to the lower expert.
  std::vector<std::uint32_t> first(4);
  gate.choose(even, first, std::span(weights).first(4));
  CHECK(first == std::vector<std::uint32_t>(4, 0));
}

}  // namespace sotto::test::expert_exchange_test
