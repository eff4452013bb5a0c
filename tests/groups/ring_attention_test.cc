#include <sotto/groups/programs/ring_attention.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "alike.h"
#include "in_exchange.h"
#include "runs.h"

namespace sotto::test::ring_attention_test {

namespace {

constexpr std::uint64_t kSeed = 20'261'129;

/// A layer's attention on a ring, and the rows that it gets.
struct RingCase {
  int nodes = 1;
  RingAttentionOptions options = {.positions = 12, .heads = 2, .width = 4};
  float sharpness = 1;  ///< factor of the queries
  int only = -1;        ///< the node at whose outputs there is a gradient; −1: all

  std::size_t elements() const { return options.heads * options.width; }
  std::size_t size() const { return options.positions * elements(); }
};

/// Rows of the whole sequence, in its order.
struct Sequence {
  explicit Sequence(const RingCase& at) {
    for (std::vector<float>* rows : {&q, &k, &v, &dout}) {
      const auto number = static_cast<std::uint32_t>(rows == &q   ? 0
                                                     : rows == &k ? 1
                                                     : rows == &v ? 2
                                                                  : 3);
      RandomStream stream({.seed = kSeed, .purpose = Purpose::test, .bucket = number});
      rows->resize(at.size());
      for (float& value : *rows) {
        value = static_cast<float>(stream.normal()) * (rows == &q ? at.sharpness : 1);
      }
    }
    for (int node = 0; node < at.nodes && at.only >= 0; ++node) {
      for (const int piece : {node, 2 * at.nodes - 1 - node}) {
        const Chunk positions = chunk_of(at.options.positions, 2 * at.nodes, piece);
        for (std::size_t i = 0; i < positions.size * at.elements(); ++i) {
          dout[positions.offset * at.elements() + i] *= node == at.only ? 1.0F : 0.0F;
        }
      }
    }
  }

  std::vector<float> q, k, v, dout;
};

std::vector<float> rows_at(const std::vector<float>& whole, std::size_t elements,
                           const std::array<Chunk, 2>& pieces) {
  std::vector<float> rows;
  for (const Chunk& piece : pieces) {
    const auto part = std::span(whole).subspan(piece.offset * elements, piece.size * elements);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

/// Forward and back; the output and the three gradients end up in the parameters.
class RingPasses final : public Program {
 public:
  RingPasses(const ProgramNode& node, const RingCase& at) : attention(node, at.options) {
    const Sequence all(at);
    const auto pieces = attention.pieces();
    q_ = rows_at(all.q, at.elements(), pieces);
    k_ = rows_at(all.k, at.elements(), pieces);
    v_ = rows_at(all.v, at.elements(), pieces);
    dout_ = rows_at(all.dout, at.elements(), pieces);
    const std::size_t size = attention.rows() * at.elements();
    const auto part = [&](std::size_t number) {
      return node.parameters().subspan(number * size, size);
    };
    const AttentionInput in = {.q = q_, .k = k_, .v = v_};
    attention.list_forward(in, part(0), stages_);
    attention.list_backward(in, part(0), dout_, {.q = part(1), .k = part(2), .v = part(3)},
                            stages_);
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

  RingAttention attention;

 private:
  std::vector<float> q_, k_, v_, dout_;
  std::vector<ProgramStage> stages_;
};

ProgramJob job_of(const RingCase& at) {
  return {
      .nodes = at.nodes,
      .grid = "ring=" + std::to_string(at.nodes),
      .dimension = 4 * at.size(),
      .rounds = 1,
      .seed = kSeed,
      .build = [at](const ProgramNode& node) { return std::make_unique<RingPasses>(node, at); }};
}

RingPasses& passes_of(Algorithm& node) {
  return dynamic_cast<RingPasses&>(dynamic_cast<ProgramAlgorithm&>(node).program());
}

/// The output and the gradients of the whole sequence, in its order.
using Results = std::array<std::vector<float>, 4>;

Results run_ring(const RingCase& at) {
  const ProgramRun run = ProgramRunner(job_of(at)).run("eager");
  for (const Status& status : run.statuses) {
    CAPTURE(status.message());
    REQUIRE(status.ok());
  }
  Results all;
  ProgramRunner again(job_of(at));
  for (std::vector<float>& whole : all) {
    whole.resize(at.size());
  }
  for (Rank rank = 0; rank < at.nodes; ++rank) {
    const auto node = again.algorithm(rank);
    const auto pieces = passes_of(*node).attention.pieces();
    auto from = run.models[static_cast<std::size_t>(rank)].begin();
    for (std::vector<float>& whole : all) {
      for (const Chunk& piece : pieces) {
        const auto count = static_cast<std::ptrdiff_t>(piece.size * at.elements());
        std::copy_n(from, count,
                    whole.begin() + static_cast<std::ptrdiff_t>(piece.offset * at.elements()));
        from += count;
      }
    }
  }
  return all;
}

/// One node's attention in double precision, of all scores at once.
struct PlainAttention {
  explicit PlainAttention(const RingCase& at) : at_(at), all_(at) {
    for (auto& whole : results) {
      whole.resize(at.size());
    }
    for (std::size_t head = 0; head < at.options.heads; ++head) {
      for (std::size_t t = 0; t < at.options.positions; ++t) {
        query(head, t);
      }
    }
  }

  std::array<std::vector<double>, 4> results;
  double largest_score = 0;

 private:
  std::size_t index(std::size_t row, std::size_t head) const {
    return row * at_.elements() + head * at_.options.width;
  }
  double dot(const std::vector<float>& a, std::size_t row, const std::vector<float>& b,
             std::size_t other, std::size_t head) const {
    double sum = 0;
    for (std::size_t c = 0; c < at_.options.width; ++c) {
      sum += static_cast<double>(a[index(row, head) + c]) *
             static_cast<double>(b[index(other, head) + c]);
    }
    return sum;
  }
  void query(std::size_t head, std::size_t t) {
    const std::size_t keys = at_.options.causal ? t + 1 : at_.options.positions;
    const double scale = 1 / std::sqrt(static_cast<double>(at_.options.width));
    std::vector<double> p(keys);
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < keys; ++j) {
      p[j] = dot(all_.q, t, all_.k, j, head) * scale;
      most = std::max(most, p[j]);
      largest_score = std::max(largest_score, std::abs(p[j]));
    }
    double sum = 0;
    for (double& value : p) {
      value = std::exp(value - most);
      sum += value;
    }
    double mean = 0;
    std::vector<double> change(keys);
    for (std::size_t j = 0; j < keys; ++j) {
      p[j] /= sum;
      change[j] = dot(all_.dout, t, all_.v, j, head);
      mean += p[j] * change[j];
    }
    for (std::size_t j = 0; j < keys; ++j) {
      const double ds = p[j] * (change[j] - mean) * scale;
      for (std::size_t c = 0; c < at_.options.width; ++c) {
        const std::size_t own = index(t, head) + c;
        const std::size_t other = index(j, head) + c;
        results[0][own] += p[j] * static_cast<double>(all_.v[other]);
        results[1][own] += ds * static_cast<double>(all_.k[other]);
        results[2][other] += ds * static_cast<double>(all_.q[own]);
        results[3][other] += p[j] * static_cast<double>(all_.dout[own]);
      }
    }
  }

  RingCase at_;
  Sequence all_;
};

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) {
    most = std::max(most, std::abs(value));
  }
  return most;
}

/// The largest difference, as a part of the largest element.
double worst_difference(const std::vector<float>& found, const std::vector<double>& due) {
  double worst = 0;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const double error = std::abs(static_cast<double>(found[i]) - due[i]);
    worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
  }
  return worst / std::max(1e-30, largest(due));
}

/// Rounding may do this much: in units of 2⁻²⁴, by the scores' size.
double allowed(const PlainAttention& plain) {
  return std::ldexp(64 + 16 * plain.largest_score, -24);
}

void check_ring(const RingCase& at) {
  CAPTURE(at.nodes);
  CAPTURE(at.options.positions);
  CAPTURE(at.options.heads);
  CAPTURE(at.options.causal);
  const Results found = run_ring(at);
  const PlainAttention plain(at);
  CAPTURE(plain.largest_score);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(worst_difference(found[i], plain.results[i]) <= allowed(plain));
  }
}

}  // namespace

TEST_CASE("attention round a ring is one node's attention, forward and back") {
  CAPTURE(kSeed);
  for (const int nodes : {1, 2, 3, 4, 8}) {
    for (const bool causal : {true, false}) {
      for (const std::size_t positions : {1UL, 5UL, 33UL, 64UL, 300UL}) {
        if (positions == 300 && nodes > 2) {
          continue;
        }
        check_ring({.nodes = nodes,
                    .options = {.positions = positions, .heads = 2, .width = 4, .causal = causal}});
      }
      check_ring({.nodes = nodes,
                  .options = {.positions = 40, .heads = 1, .width = 32, .causal = causal}});
      check_ring(
          {.nodes = nodes, .options = {.positions = 17, .heads = 3, .width = 1, .causal = causal}});
    }
  }
}

TEST_CASE("scores fifty times as large neither overflow nor leave what rounding allows") {
  CAPTURE(kSeed);
  for (const int nodes : {1, 2, 4}) {
    check_ring(
        {.nodes = nodes, .options = {.positions = 64, .heads = 1, .width = 32}, .sharpness = 50});
    check_ring(
        {.nodes = nodes, .options = {.positions = 64, .heads = 1, .width = 32}, .sharpness = 1e4F});
  }
}

TEST_CASE("a gradient at one node's outputs reaches the keys and values of every other") {
  CAPTURE(kSeed);
  for (int only = 0; only < 4; ++only) {
    CAPTURE(only);
    const RingCase at{.nodes = 4, .options = {.positions = 24, .causal = false}, .only = only};
    check_ring(at);
    const Results found = run_ring(at);
    for (const std::size_t gradient : {2UL, 3UL}) {
      for (std::size_t piece = 0; piece < 8; ++piece) {
        double size = 0;
        for (std::size_t i = 0; i < 3 * at.elements(); ++i) {
          size += std::abs(static_cast<double>(found[gradient][piece * 3 * at.elements() + i]));
        }
        CHECK(size > 0);
      }
    }
  }
}

TEST_CASE("attention round a ring gives the same bits in every driver, and carries what it said") {
  CAPTURE(kSeed);
  for (const int nodes : {1, 2, 3}) {
    for (const char* compressor : {"none", "quant:8", "fp16"}) {
      CAPTURE(nodes);
      CAPTURE(std::string(compressor));
      ProgramJob job =
          job_of({.nodes = nodes,
                  .options = {.positions = 23, .heads = 2, .width = 4, .compressor = compressor}});
      job.rounds = 2;
      check_alike(job, drivers());
    }
  }
}

TEST_CASE("what a node of a ring sends is what the formulas say, and nodes have as much to do") {
  for (const int nodes : {2, 3, 4, 8}) {
    CAPTURE(nodes);
    const auto p = static_cast<std::uint64_t>(nodes);
    const RingCase at{.nodes = nodes, .options = {.positions = 48 * p}};
    ProgramRunner runner(job_of(at));
    double flops = 0;
    for (Rank rank = 0; rank < nodes; ++rank) {
      const auto node = runner.algorithm(rank);
      const EdgeVolume sent = passes_of(*node).attention.volume().all_sent();
      const std::uint64_t whole = at.size();  // T h
      CHECK(sent.frames == (p - 1) + (p - 1) + p);
      CHECK(sent.elements == 2 * (p - 1) * whole / p + 2 * (p - 1) * whole / p + 2 * whole);
      CHECK(sent.bytes == sent.frames * kFrameHeaderBytes + sent.elements * sizeof(float));
      double own = 0;
      for (const ProgramStage& stage : passes_of(*node).stages()) {
        own += stage.flops;
      }
      flops = rank == 0 ? own : flops;
      CHECK(own == flops);
    }
    // 4 and 10 operations an element and pair, of which T (T + 1)/2 are seen.
    const auto positions = static_cast<double>(at.options.positions);
    CHECK(flops * nodes ==
          14 * positions * (positions + 1) / 2 * static_cast<double>(at.elements()));
  }
}

TEST_CASE("what a node of a ring holds goes down with the number of nodes, frames and all") {
  const auto held = [](int nodes) {
    ProgramRunner runner(job_of({.nodes = nodes, .options = {.positions = 8192, .width = 8}}));
    return passes_of(*runner.algorithm(0)).attention.room_bytes();
  };
  const std::size_t two = held(2);
  CHECK(held(4) < two * 6 / 10);
  CHECK(held(8) < two * 4 / 10);
}

TEST_CASE("8 bits of keys and values lose little, and as much round a longer ring") {
  CAPTURE(kSeed);
  for (const int nodes : {2, 8}) {
    CAPTURE(nodes);
    RingCase at{.nodes = nodes, .options = {.positions = 64, .heads = 1, .width = 32}};
    const Results exact = run_ring(at);
    at.options.compressor = "quant:8";
    const Results few = run_ring(at);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      CAPTURE(i);
      double error = 0;
      double size = 0;
      for (std::size_t k = 0; k < exact[i].size(); ++k) {
        error += std::pow(static_cast<double>(few[i][k] - exact[i][k]), 2);
        size += std::pow(static_cast<double>(exact[i][k]), 2);
      }
      CHECK(error > 0);
      CHECK(std::sqrt(error / size) < 0.02);
    }
  }
}

TEST_CASE("a ring refuses rows that are cut short, and counts them") {
  CAPTURE(kSeed);
  const ProgramJob job = job_of({.nodes = 2});
  InExchange at(job);
  const Bytes whole = at.frame(0, 1);
  Bytes payload = payload_of(whole);
  payload.resize(payload.size() - 32);  // a row of 8 floats
  const Bytes shorter = with_payload(whole, payload, 2 * 6 * 8);
  std::ranges::copy(shorter, at.exchanges[0].receives[at.edge(0, 1)].buffer.begin());
  at.exchanges[0].receives[at.edge(0, 1)].bytes = shorter.size();
  const Status status = at.nodes[0]->complete(at.exchanges[0]);
  CHECK_FALSE(status.ok());
  CAPTURE(status.message());
  CHECK(status.message().find("node 1") != std::string::npos);
  CHECK(at.nodes[0]->counters().bad_frames == 1);
}

TEST_CASE("attention that cannot be is refused") {
  const auto refused = [](const RingAttentionOptions& options) {
    try {
      ProgramRunner(job_of({.nodes = 2, .options = options})).algorithm(0);
    } catch (const Error& error) {
      return error.field();
    }
    return std::string();
  };
  CHECK(refused({.positions = 4}).empty());
  CHECK(refused({.positions = 0}) == "positions");
  CHECK(refused({.heads = 0}) == "heads");
  CHECK(refused({.width = 0}) == "width");
  CHECK(refused({.axis = "data"}) == "axis");
  CHECK(refused({.compressor = "quant:4"}) == "compressor");
  CHECK(refused({.width = 8, .compressor = "topk:0.5"}) == "compressor");
}

}  // namespace sotto::test::ring_attention_test
