#include <sotto/groups/programs/pipeline.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>

#include "runs.h"

namespace sotto::test::pipeline_test {

namespace {

constexpr std::uint64_t kSeed = 1'811;
constexpr std::size_t kUnits = 12;  // width of all layers
constexpr std::size_t kLayers = 6;  // of the whole model
constexpr std::size_t kExamples = 24;
constexpr std::size_t kLayerSize = kUnits * kUnits;

/// How a model is cut and run.
struct Cut {
  int data = 1;
  int stages = 1;
  int batches = 4;
  std::size_t rows = 3;
  std::string compressor = "none";
  std::string back = "none";
  std::string first = "quant:8";
  GroupAlgorithm algorithm = {
      .axis = "data", .algorithm = "allreduce", .step_rule = {.learning_rate = 0.2}};
  double flops = 0;

  std::size_t layers() const { return kLayers / static_cast<std::size_t>(stages); }
};

/// Layers y = tanh(x W), between which the model is cut. It learns a vector for each example.
class TanhLayers final : public PipelineStage {
 public:
  TanhLayers(std::span<const float> parameters, const Cut& cut, int data, int stage)
      : w_(parameters),
        cut_(cut),
        data_(data),
        first_(stage == 0),
        last_(stage + 1 == cut.stages),
        gradient_(parameters.size()),
        kept_(static_cast<std::size_t>(cut.batches)) {}

  Status begin(const RoundInput& in) override {
    round_ = in.round;
    loss_ = 0;
    std::ranges::fill(gradient_, 0.0F);
    return {};
  }
  std::span<const std::uint64_t> keys(int batch) override {
    // Passes over the node's examples; the last micro-batch of a round is one row short.
    const std::size_t rows = cut_.rows - (batch + 1 == cut_.batches ? 1U : 0U);
    keys_.clear();
    for (std::size_t i = 0; i < rows; ++i) {
      const auto at =
          (round_ * static_cast<std::size_t>(cut_.batches) + static_cast<std::size_t>(batch)) *
              cut_.rows +
          i;
      keys_.push_back(at % kExamples + static_cast<std::size_t>(data_) * kExamples);
    }
    return keys_;
  }
  Status forward(int batch, std::span<const float> in, std::span<float> out) override {
    auto& kept = kept_[static_cast<std::size_t>(batch)];
    const std::size_t rows = keys(batch).size();
    kept.assign(cut_.layers() + 1, std::vector<float>(rows * kUnits));
    if (first_) {
      example(0, kept[0]);
    } else {
      std::ranges::copy(in, kept[0].begin());
    }
    for (std::size_t l = 0; l < cut_.layers(); ++l) {
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t o = 0; o < kUnits; ++o) {
          float sum = 0;
          for (std::size_t i = 0; i < kUnits; ++i) {
            sum += kept[l][r * kUnits + i] * w_[l * kLayerSize + i * kUnits + o];
          }
          kept[l + 1][r * kUnits + o] = std::tanh(sum);
        }
      }
    }
    CHECK(out.size() == (last_ ? 0 : rows * kUnits));
    std::copy_n(kept.back().begin(), out.size(), out.begin());
    return {};
  }
  Status backward(int batch, std::span<const float> in, std::span<const float> dout,
                  std::span<float> din) override {
    const auto& kept = kept_[static_cast<std::size_t>(batch)];
    CHECK(in.size() == (first_ ? 0 : kept[0].size()));
    CHECK((first_ || same_bits(in, kept[0])));
    const std::size_t rows = keys(batch).size();
    std::vector<float> delta(dout.begin(), dout.end());
    if (last_) {
      delta.resize(rows * kUnits);
      example(1, delta);
      for (std::size_t k = 0; k < delta.size(); ++k) {
        delta[k] = 0.1F * (kept.back()[k] - std::tanh(delta[k]));
        loss_ += static_cast<double>(delta[k] * delta[k]);
      }
    }
    for (std::size_t l = cut_.layers(); l-- > 0;) {
      std::vector<float> below(rows * kUnits);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t o = 0; o < kUnits; ++o) {
          const float y = kept[l + 1][r * kUnits + o];
          const float d = delta[r * kUnits + o] * (1 - y * y);
          for (std::size_t i = 0; i < kUnits; ++i) {
            const std::size_t at = l * kLayerSize + i * kUnits + o;
            gradient_[at] += d * kept[l][r * kUnits + i];
            below[r * kUnits + i] += d * w_[at];
          }
        }
      }
      delta = below;
    }
    CHECK(din.size() == (first_ ? 0 : delta.size()));
    std::copy_n(delta.begin(), din.size(), din.begin());
    return {};
  }
  std::span<const float> gradient() const override { return gradient_; }
  double loss() const { return loss_; }

 private:
  /// The features or targets of the rows whose keys were asked for last.
  void example(std::uint32_t what, std::span<float> out) const {
    for (std::size_t r = 0; r < keys_.size(); ++r) {
      RandomStream stream({.seed = keys_[r], .purpose = Purpose::test, .bucket = what});
      for (float& value : out.subspan(r * kUnits, kUnits)) {
        value = static_cast<float>(stream.normal());
      }
    }
  }

  std::span<const float> w_;
  Cut cut_;
  int data_;
  bool first_;
  bool last_;
  Round round_ = 0;
  double loss_ = 0;
  std::vector<std::uint64_t> keys_;
  std::vector<float> gradient_;
  std::vector<std::vector<std::vector<float>>> kept_;
};

PipelineOptions options_of(const Cut& cut) {
  return {.batches = cut.batches,
          .rows = cut.rows,
          .widths = {kUnits},
          .keys = kExamples,
          .compressor = cut.compressor,
          .first = cut.first,
          .gradient_compressor = cut.back,
          .forward_flops = cut.flops,
          .backward_flops = 2 * cut.flops};
}

/// Layer l of the whole model begins the same, wherever it lies.
void begin_layers(std::span<float> w, std::size_t first_layer) {
  for (std::size_t l = 0; l * kLayerSize < w.size(); ++l) {
    RandomStream stream(
        {.seed = kSeed, .round = static_cast<Round>(first_layer + l), .purpose = Purpose::test});
    for (float& value : w.subspan(l * kLayerSize, kLayerSize)) {
      value = static_cast<float>(stream.normal()) / std::sqrt(static_cast<float>(kUnits));
    }
  }
}

void no_gradient(Rank, Round, std::span<const float>, std::span<float> g) {
  std::ranges::fill(g, 0.0F);
}

/// A run of a cut, and its programs.
struct PipelineRun {
  explicit PipelineRun(const Cut& chosen, Round rounds = 10) : cut(chosen) {
    ProgramJob job{
        .nodes = cut.data * cut.stages,
        .grid = "data=" + std::to_string(cut.data) + ",stage=" + std::to_string(cut.stages),
        .dimension = cut.layers() * kLayerSize,
        .rounds = rounds,
        .seed = kSeed,
        .build = {}};
    job.flops_per_second = cut.flops > 0 ? 1e9 : 0;
    job.make = [this](const ProgramSetup& setup) {
      const int data = setup.rank / cut.stages;
      const int stage = setup.rank % cut.stages;
      begin_layers(setup.parameters, static_cast<std::size_t>(stage) * cut.layers());
      auto node = std::make_unique<ProgramGradient>(
          setup,
          [&](const ProgramNode& at) {
            auto layers = std::make_unique<TanhLayers>(setup.parameters, cut, data, stage);
            auto program = std::make_unique<Pipeline>(at, options_of(cut), std::move(layers));
            const std::lock_guard lock(making);
            programs.push_back(program.get());
            return program;
          },
          cut.algorithm);
      const std::lock_guard lock(making);
      volumes[setup.rank] = node->volume();
      return node;
    };
    runner = std::make_unique<ProgramRunner>(job, no_gradient);
  }
  ProgramRun run(std::string_view driver) {
    ProgramRun done = runner->run(driver);
    for (const Status& status : done.statuses) {
      CAPTURE(status.message());
      REQUIRE(status.ok());
    }
    return done;
  }
  /// Runs in lock step, and leaves the programs there to be looked at.
  LockstepDriver::Traffic look(Round rounds) {
    for (Rank rank = 0; rank < cut.data * cut.stages; ++rank) {
      lockstep.add(runner->algorithm(rank));
    }
    const Status status = lockstep.run(rounds, no_gradient);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    return lockstep.traffic();
  }
  /// The layers of one pipeline, the first stage's first.
  static std::vector<float> whole(const ProgramRun& done, int stages, int data = 0) {
    std::vector<float> all;
    for (int stage = 0; stage < stages; ++stage) {
      const auto& part = done.models[static_cast<std::size_t>(data * stages + stage)];
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  Cut cut;
  std::mutex making;  // held in what drivers call on a thread for each node
  std::vector<Pipeline*> programs;
  std::map<Rank, ExchangeVolume> volumes;
  std::unique_ptr<ProgramRunner> runner;
  LockstepDriver lockstep;
};

}  // namespace

TEST_CASE("a pipeline without compression is the unsplit model, to the bit") {
  CAPTURE(kSeed);
  for (const int data : {1, 2}) {
    for (const int batches : {1, 2, 5}) {
      CAPTURE(data);
      CAPTURE(batches);
      const ProgramRun plain =
          PipelineRun({.data = data, .stages = 1, .batches = batches}).run("eager");
      const auto due = PipelineRun::whole(plain, 1);
      for (const int stages : {2, 3, 6}) {
        CAPTURE(stages);
        const ProgramRun cut =
            PipelineRun({.data = data, .stages = stages, .batches = batches}).run("eager");
        for (int at = 0; at < data; ++at) {
          CHECK(same_bits(PipelineRun::whole(cut, stages, at), due));
        }
      }
    }
  }
}

TEST_CASE("a pipeline of one stage is its stage, micro-batch by micro-batch") {
  CAPTURE(kSeed);
  const Cut cut{.batches = 3, .algorithm = {.axis = "data", .step_rule = {.learning_rate = 0.25}}};
  const ProgramRun run = PipelineRun(cut, 1).run("eager");
  std::vector<float> w(kLayers * kLayerSize);
  begin_layers(w, 0);
  TanhLayers layers(w, cut, 0, 0);
  REQUIRE(layers.begin({}).ok());
  for (int batch = 0; batch < 3; ++batch) {
    REQUIRE(layers.forward(batch, {}, {}).ok());
    REQUIRE(layers.backward(batch, {}, {}, {}).ok());
  }
  for (std::size_t k = 0; k < w.size(); ++k) {
    CHECK(run.models[0][k] == w[k] - 0.25F * layers.gradient()[k]);
  }
}

TEST_CASE("pipelines give the same bits in every driver") {
  CAPTURE(kSeed);
  for (const Cut& cut :
       {Cut{.data = 2, .stages = 2, .compressor = "quant:3", .back = "quant:8"},
        Cut{.data = 2,
        .stages = 3,
        .compressor = "quant:4",
        .algorithm = {.axis = "data", .algorithm = "dcd", .compressor = "quant:8"}}}) {
    CAPTURE(cut.stages);
    std::vector<std::vector<float>> first;
    for (const std::string& driver : drivers()) {
      CAPTURE(driver);
      const ProgramRun run = PipelineRun(cut).run(driver);
      first = first.empty() ? run.models : first;
      CHECK(run.models == first);
    }
  }
}

TEST_CASE("what a pipeline carries is what its volume says, and less once rows come again") {
  CAPTURE(kSeed);
  // Every batch but the last is full, and rows of a pass are new.
  PipelineRun run({.stages = 3, .batches = 4, .compressor = "quant:2", .back = "quant:8"});
  const auto once = run.look(1);
  const KeyedLink& link = run.programs[0]->link(0);
  for (const auto& [edge, traffic] : once) {
    if (traffic.frames == 0) {
      continue;
    }
    const EdgeVolume said = run.volumes.at(edge.first).sent.at(edge.second);
    const bool forward = edge.first < edge.second;
    const EdgeVolume missing_row = forward ? link.volume_there(3, 0) : link.volume_back(3);
    const EdgeVolume last = forward ? link.volume_there(2, 0) : link.volume_back(2);
    CHECK(traffic.frames == said.frames);
    CHECK(traffic.bytes == said.bytes - missing_row.bytes + last.bytes);
  }
  // Three rounds are a pass of 24 of 12 rows, less the missing ones.
  PipelineRun longer({.stages = 3, .batches = 4, .compressor = "quant:2", .back = "quant:8"});
  const auto again = longer.look(12);
  const auto row_bytes = [](const char* compressor) {
    return make_compressor(compressor)->max_bytes(kUnits);
  };
  const KeyedLinkCounts counts = longer.programs[1]->link(0).counts();
  CHECK(counts.first + counts.again == 12 * 11);
  CHECK(counts.first == 22);
  CHECK(again.at({0, 1}).bytes ==
        12 * 4 * 72 + 22 * row_bytes("quant:8") + 110 * row_bytes("quant:2"));
}

TEST_CASE("few keyed bits train nearly as exact rows do") {
  CAPTURE(kSeed);
  const auto loss = [](const std::string& compressor, Round rounds) {
    PipelineRun run({.stages = 2, .batches = 4, .compressor = compressor, .back = "quant:8"});
    run.look(rounds);
    return dynamic_cast<const TanhLayers&>(run.programs[1]->stage()).loss();
  };
  const double begin = loss("none", 1);
  const double exact = loss("none", 600);
  CHECK(exact < begin / 20);
  for (const char* compressor : {"quant:4", "quant:3"}) {
    CAPTURE(compressor);
    CHECK(loss(compressor, 600) < begin / 20);
  }
}

TEST_CASE("stages take their time in the simulator, all micro-batches of them") {
  CAPTURE(kSeed);
  constexpr double kFlops = 4e6;  // 4 ms forward, 8 ms backward
  const Cut cut{.stages = 3, .batches = 4};
  Cut paid = cut;
  paid.flops = kFlops;
  const ProgramRun free = PipelineRun(cut, 2).run("simulator");
  const ProgramRun timed = PipelineRun(paid, 2).run("simulator");
  CHECK(free.models == timed.models);
  for (std::size_t i = 0; i < 3; ++i) {
    // The first stage's first micro-batch is in front of the first exchange.
    const int forward = i == 0 ? 3 : 4;
    CHECK(timed.report.nodes[i].compute - free.report.nodes[i].compute ==
          2 * (forward * 4 + 4 * 8) * 1'000'000);
  }
}

TEST_CASE("a pipeline that goes on from a checkpoint gives the bits of one that did not stop") {
  CAPTURE(kSeed);
  const Cut cut{.data = 1, .stages = 2, .compressor = "quant:2", .back = "quant:8"};
  PipelineRun whole(cut);
  PipelineRun halves(cut);
  PipelineRun resumed(cut);
  LockstepDriver uninterrupted;
  LockstepDriver first;
  LockstepDriver second;
  for (Rank rank = 0; rank < 2; ++rank) {
    uninterrupted.add(whole.runner->algorithm(rank));
    first.add(halves.runner->algorithm(rank));
    second.add(resumed.runner->algorithm(rank));
  }
  REQUIRE(uninterrupted.run(9, no_gradient).ok());
  REQUIRE(first.run(4, no_gradient).ok());
  for (Rank rank = 0; rank < 2; ++rank) {
    ByteBuffer state;
    first.node(static_cast<std::size_t>(rank)).save(state);
    ByteReader reader(state.bytes());
    REQUIRE(second.node(static_cast<std::size_t>(rank)).load(reader).ok());
    CHECK(reader.finished());
    std::ranges::copy(halves.runner->parameters(rank), resumed.runner->parameters(rank).begin());
  }
  REQUIRE(second.run(5, no_gradient).ok());
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(same_bits(second.node(i).parameters(), uninterrupted.node(i).parameters()));
  }
}

TEST_CASE("pipelines that cannot be are refused") {
  const auto refused = [](const PipelineOptions& options) {
    ProgramJob job{.nodes = 3, .grid = "stage=3", .dimension = kLayerSize, .build = {}};
    job.build = [&](const ProgramNode& node) {
      return std::make_unique<Pipeline>(
          node, options, std::make_unique<TanhLayers>(node.parameters(), Cut{}, 0, 0));
    };
    try {
      ProgramRunner(job).algorithm(0);
    } catch (const Error& error) {
      return error.field();
    }
    return std::string();
  };
  CHECK(refused({}).empty());
  CHECK(refused({.widths = {3, 4}}).empty());
  CHECK(refused({.widths = {}}) == "widths");
  CHECK(refused({.widths = {3, 4, 5}}) == "widths");
  CHECK(refused({.batches = 0}) == "batches");
  CHECK(refused({.axis = "data"}) == "axis");
  CHECK(refused({.compressor = "quant:1"}) == "compressor");
  CHECK(refused({.gradient_compressor = "quant:4"}) == "compressor");
}

}  // namespace sotto::test::pipeline_test
