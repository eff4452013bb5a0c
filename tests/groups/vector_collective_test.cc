#include <sotto/groups/vector_collective.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/groups/program.h>

#include "alike.h"
#include "runs.h"

namespace sotto::test::vector_collective_test {

namespace {

constexpr std::uint64_t kSeed = 20'261'127;

using Make = std::function<std::unique_ptr<VectorCollective>(GroupMember, const VectorOptions&)>;

/// One kind of collective in one form.
struct Kind {
  std::string name;
  CollectiveForm form;
  Carried data;  ///< that fits it
  bool sums;
  Make make;
};

const std::vector<Kind>& kinds() {
  const auto broadcast = [](GroupMember m, const VectorOptions& o) {
    const int root = m.group.size() - 1;
    return make_broadcast(std::move(m), o, root);
  };
  const auto shift = [](GroupMember m, const VectorOptions& o) {
    return make_ring_shift(std::move(m), o, 1);
  };
  const auto reduce = [](GroupMember m, const VectorOptions& o) {
    const int root = m.group.size() - 1;
    return make_reduce(std::move(m), o, root);
  };
  static const std::vector<Kind> all = {
      {"broadcast", CollectiveForm::direct, Carried::update, false, broadcast},
      {"broadcast", CollectiveForm::tree, Carried::update, false, broadcast},
      {"all_gather", CollectiveForm::direct, Carried::update, false, make_all_gather},
      {"all_gather", CollectiveForm::ring, Carried::update, false, make_all_gather},
      {"reduce_scatter", CollectiveForm::direct, Carried::gradient, true, make_reduce_scatter},
      {"reduce_scatter", CollectiveForm::ring, Carried::gradient, true, make_reduce_scatter},
      {"all_reduce", CollectiveForm::direct, Carried::gradient, true, make_all_reduce},
      {"all_reduce", CollectiveForm::ring, Carried::gradient, true, make_all_reduce},
      {"ring_shift", CollectiveForm::direct, Carried::activation, false, shift},
      {"reduce", CollectiveForm::direct, Carried::gradient, true, reduce},
  };
  return all;
}

/// How a kind may be compressed: nothing, if it may not.
std::vector<Encoding> encodings(const Kind& kind) {
  std::vector<Encoding> some = {{.data = kind.data}};
  if (kind.data == Carried::activation) {
    some.push_back({.data = kind.data, .compressor = "quant:8"});
  } else if (!(kind.sums && kind.form == CollectiveForm::ring)) {
    for (const char* compressor : {"quant:8", "sign"}) {
      some.push_back(
          {.data = kind.data, .memory = ErrorMemory::feedback, .compressor = compressor});
    }
  }
  return some;
}

/// Rounds of one collective: the gradient goes in, and the vector that comes out is added to the
/// parameters.
ProgramJob job_of(const Kind& kind, int nodes, std::size_t elements, const Encoding& encoding) {
  ProgramJob job{.nodes = nodes,
                 .grid = "all=" + std::to_string(nodes),
                 .dimension = elements,
                 .seed = kSeed,
                 .build = {}};
  const VectorOptions options{.elements = elements, .form = kind.form, .encoding = encoding};
  job.build = [make = kind.make, options](const ProgramNode& node) {
    auto program = std::make_unique<ListProgram>();
    auto collective = make(node.everyone(), options);
    ListProgram* const p = program.get();
    VectorCollective* const c = collective.get();
    const std::span<float> x = node.parameters();
    program->collectives.push_back(std::move(collective));
    program->list = {{"run",
                      [p, c](const RoundInput& input) {
                        p->v.assign(input.gradient.begin(), input.gradient.end());
                        c->begin(p->v);
                        return Status();
                      },
                      c, 0},
                     {"add",
                      [p, x](const RoundInput&) {
                        host_ops().axpy(1, p->v, x);
                        return Status();
                      },
                      nullptr, 0}};
    return program;
  };
  return job;
}

/// The vector that `kind` leaves at the node, of exact inputs.
std::vector<double> expected(const Kind& kind, const std::vector<std::vector<float>>& in,
                             std::size_t rank) {
  const std::size_t p = in.size();
  const std::size_t d = in[0].size();
  std::vector<double> out(in[rank].begin(), in[rank].end());
  for (std::size_t owner = 0; owner < p; ++owner) {
    const Chunk chunk = chunk_of(d, static_cast<int>(p), static_cast<int>(owner));
    for (std::size_t k = chunk.offset; k < chunk.offset + chunk.size; ++k) {
      double sum = 0;
      for (const auto& v : in) {
        sum += static_cast<double>(v[k]);
      }
      if (kind.name == "broadcast") {
        out[k] = static_cast<double>(in[p - 1][k]);
      } else if (kind.name == "all_gather") {
        out[k] = static_cast<double>(in[owner][k]);
      } else if (kind.name == "ring_shift") {
        out[k] = static_cast<double>(in[(rank + p - 1) % p][k]);
      } else if (kind.name == "reduce") {
        out[k] = rank + 1 == p ? sum : out[k];
      } else if (kind.name == "all_reduce" || owner == rank) {
        out[k] = sum;
      }
    }
  }
  return out;
}

}  // namespace

namespace {

constexpr int kMembers[] = {1, 2, 3, 4, 7, 8};

std::vector<std::size_t> lengths(int members) {
  const auto p = static_cast<std::size_t>(members);
  return {0, 1, p - 1, p, 4097, 100'003};
}

}  // namespace

TEST_CASE("collectives give the same bits in drivers without sockets, and carry what they said") {
  CAPTURE(kSeed);
  for (const int p : kMembers) {
    for (const std::size_t d : lengths(p)) {
      if (d > 50'000 && p != 3 && p != 8) {
        continue;  // twice is enough for the time that it takes
      }
      for (const Kind& kind : kinds()) {
        for (const Encoding& encoding : encodings(kind)) {
          CAPTURE(p);
          CAPTURE(d);
          CAPTURE(kind.name);
          CAPTURE(kind.form);
          CAPTURE(encoding.compressor);
          check_alike(job_of(kind, p, d, encoding), {"eager", "late", "simulator", "inproc"});
        }
      }
    }
  }
}

TEST_CASE("collectives give the same bits over sockets, and carry what they said") {
  CAPTURE(kSeed);
  std::vector<std::string> in = drivers();
  std::erase_if(in, [](const std::string& name) {
    return name != "eager" && name != "gloo" && name != "zmq";
  });
  RandomStream stream({.seed = kSeed, .purpose = Purpose::select});
  for (const int p : kMembers) {
    for (const Kind& kind : kinds()) {
      for (const Encoding& encoding : encodings(kind)) {
        const std::size_t d = lengths(p)[stream.below(6)];
        CAPTURE(p);
        CAPTURE(d);
        CAPTURE(kind.name);
        CAPTURE(kind.form);
        CAPTURE(encoding.compressor);
        check_alike(job_of(kind, p, d, encoding), in);
      }
    }
  }
}

TEST_CASE("collectives of any number of members and elements end as they should") {
  CAPTURE(kSeed);
  for (const int p : kMembers) {
    const auto n = static_cast<std::size_t>(p);
    for (const std::size_t d : lengths(p)) {
      for (const Kind& kind : kinds()) {
        CAPTURE(p);
        CAPTURE(d);
        CAPTURE(kind.name);
        CAPTURE(kind.form);
        ProgramJob job = job_of(kind, p, d, {.data = kind.data});
        job.rounds = 1;
        const ProgramRun eager = ProgramRunner(job).run("eager");
        REQUIRE(eager.ok());
        std::vector<std::vector<float>> in(n, std::vector<float>(d));
        for (std::size_t i = 0; i < n; ++i) {
          normal_input(kSeed, static_cast<Rank>(i), 0, in[i]);
        }
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n && d > 0; ++i) {
          const bool whole = kind.name != "reduce_scatter";
          const Chunk seen = whole ? Chunk{0, d} : chunk_of(d, p, static_cast<int>(i));
          const auto right = expected(kind, in, i);
          for (std::size_t k = seen.offset; k < seen.offset + seen.size; ++k) {
            const double error = std::abs(static_cast<double>(eager.models[i][k]) - right[k]);
            wrong += error <= (kind.sums ? 1e-5 : 0) ? 0U : 1U;
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("what all members are to hold is equal at all of them, however few bits it was sent in") {
  CAPTURE(kSeed);
  for (const int p : {2, 3, 5}) {
    for (const Kind& kind : kinds()) {
      if (kind.name == "ring_shift" || kind.name.starts_with("reduce")) {
        continue;
      }
      for (const Encoding& encoding : encodings(kind)) {
        CAPTURE(kind.name);
        CAPTURE(kind.form);
        CAPTURE(encoding.compressor);
        ProgramJob job = job_of(kind, p, 1001, encoding);
        job.rounds = 3;
        const ProgramRun run = ProgramRunner(job).run("eager");
        REQUIRE(run.ok());
        for (const auto& model : run.models) {
          CHECK(same_bits(model, run.models[0]));
        }
      }
    }
  }
}

TEST_CASE("sums of whole numbers are exact in every form") {
  CAPTURE(kSeed);
  const auto whole = [](Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
    RandomStream stream({.seed = kSeed, .rank = rank, .round = round, .purpose = Purpose::test});
    for (float& value : g) {
      value = static_cast<float>(static_cast<double>(stream.below(1U << 20U)) - (1 << 19));
    }
  };
  for (const int p : {2, 3, 7, 8}) {
    std::map<std::uint64_t, std::string> sums;
    for (const Kind& kind : kinds()) {
      if (kind.name == "all_reduce") {
        ProgramJob job = job_of(kind, p, 513, {.data = kind.data});
        job.rounds = 1;
        const ProgramRun run = ProgramRunner(job, whole).run("eager");
        REQUIRE(run.ok());
        sums[hash_of(run)] += kind.name;
        std::vector<float> g(513);
        std::vector<double> sum(513);
        for (Rank rank = 0; rank < p; ++rank) {
          whole(rank, 0, {}, g);
          for (std::size_t k = 0; k < g.size(); ++k) {
            sum[k] += static_cast<double>(g[k]);
          }
        }
        for (std::size_t k = 0; k < g.size(); ++k) {
          CHECK(static_cast<double>(run.models[0][k]) == sum[k]);
        }
      }
    }
    CHECK(sums.size() == 1);
  }
}

TEST_CASE(
    "with feedback the sums over rounds are those of the inputs, but for what is still kept") {
  CAPTURE(kSeed);
  const Kind& direct = kinds()[6];
  REQUIRE(direct.name == "all_reduce");
  constexpr std::size_t kElements = 400;
  const auto error_after = [&](Round rounds) {
    ProgramJob job =
        job_of(direct, 4, kElements,
               {.data = Carried::gradient, .memory = ErrorMemory::feedback, .compressor = "sign"});
    job.rounds = rounds;
    // Equal inputs every round: the sum grows with the rounds, its error must not.
    const auto constant = [](Rank rank, Round /*round*/, std::span<const float> /*x*/,
                             std::span<float> g) { normal_input(kSeed, rank, 0, g); };
    const ProgramRun run = ProgramRunner(job, constant).run("eager");
    REQUIRE(run.ok());
    double error = 0;
    std::vector<float> g(kElements);
    std::vector<double> sum(kElements);
    for (Rank rank = 0; rank < 4; ++rank) {
      constant(rank, 0, {}, g);
      for (std::size_t k = 0; k < kElements; ++k) {
        sum[k] += static_cast<double>(g[k]) * static_cast<double>(rounds);
      }
    }
    for (std::size_t k = 0; k < kElements; ++k) {
      error += std::pow(static_cast<double>(run.models[0][k]) - sum[k], 2);
    }
    return std::sqrt(error);
  };
  CHECK(error_after(200) < 2 * error_after(50));
}

TEST_CASE(
    "gathering what was scattered, and shifting as often as there are members, change nothing") {
  CAPTURE(kSeed);
  for (const int p : {1, 2, 3, 8}) {
    CAPTURE(p);
    constexpr std::size_t kElements = 129;
    ProgramJob job{.nodes = p,
                   .grid = "all=" + std::to_string(p),
                   .dimension = kElements,
                   .rounds = 1,
                   .seed = kSeed,
                   .build = {}};
    job.build = [p](const ProgramNode& node) {
      auto program = std::make_unique<ListProgram>();
      ListProgram* const own = program.get();
      const std::span<float> x = node.parameters();
      const auto add = [&](std::unique_ptr<VectorCollective> c) {
        VectorCollective* const at = c.get();
        own->list.push_back({"step " + std::to_string(own->list.size()),
                             [own, at](const RoundInput& input) {
                               if (own->v.empty()) {
                                 own->v.assign(input.gradient.begin(), input.gradient.end());
                               }
                               at->begin(own->v);
                               return Status();
                             },
                             at, 0});
        own->collectives.push_back(std::move(c));
      };
      for (int hop = 0; hop < p; ++hop) {
        add(make_ring_shift(node.everyone(),
                            {.elements = kElements, .encoding = {.data = Carried::activation}}, 1));
      }
      // Each has its chunk of a vector that the last one knows whole.
      add(make_broadcast(node.everyone(), {.elements = kElements, .form = CollectiveForm::tree},
                         p - 1));
      add(make_all_gather(node.everyone(), {.elements = kElements, .form = CollectiveForm::ring}));
      own->list.push_back({"store",
                           [own, x](const RoundInput&) {
                             host_ops().copy(own->v, x);
                             return Status();
                           },
                           nullptr, 0});
      return program;
    };
    const auto signed_zeros = [p](Rank rank, Round /*round*/, std::span<const float> /*x*/,
                                  std::span<float> g) {
      normal_input(kSeed, rank, static_cast<Round>(p), g);
      g[0] = -0.0F;
    };
    const ProgramRun run = ProgramRunner(job, signed_zeros).run("eager");
    REQUIRE(run.ok());
    std::vector<float> last(kElements);
    signed_zeros(p - 1, 0, {}, last);
    for (const auto& model : run.models) {
      CHECK(same_bits(model, last));
    }
  }
}

TEST_CASE("an encoding that does not fit its data or its form is refused, with what would do") {
  const auto refusal = [](const Make& make, const VectorOptions& options) {
    ProgramJob job{.nodes = 1, .dimension = 8, .build = {}};
    job.build = [&](const ProgramNode& node) -> std::unique_ptr<Program> {
      make(node.everyone(), options);
      return std::make_unique<ListProgram>();
    };
    std::string message;
    try {
      ProgramRunner(job).algorithm(0);
    } catch (const Error& error) {
      message = error.what();
    }
    return message;
  };
  const auto encoded = [](Carried data, ErrorMemory memory, const char* compressor) {
    return VectorOptions{.elements = 8, .encoding = {data, memory, compressor}};
  };
  using enum Carried;
  constexpr auto kNone = ErrorMemory::none;
  constexpr auto kFeedback = ErrorMemory::feedback;
  CHECK(refusal(make_all_reduce, encoded(gradient, kNone, "sign")).find("feedback") !=
        std::string::npos);
  CHECK(refusal(make_all_reduce, encoded(gradient, kFeedback, "sign")).empty());
  CHECK(refusal(make_all_reduce, encoded(gradient, kNone, "quant:4")).empty());
  CHECK(refusal(make_all_gather, encoded(update, kNone, "quant:8")).find("with feedback") !=
        std::string::npos);
  CHECK(refusal(make_all_gather, encoded(parameters, kFeedback, "sign")).find("updates") !=
        std::string::npos);
  CHECK(refusal(make_all_gather, encoded(activation, kFeedback, "sign")).find("fp16") !=
        std::string::npos);
  CHECK(refusal(make_all_gather, encoded(activation, kNone, "quant:4")).find("8") !=
        std::string::npos);
  CHECK(refusal(make_all_gather, encoded(activation, kNone, "fp16")).empty());
  CHECK(refusal(make_all_gather, encoded(activation_gradient, kNone, "fp16")) != "");
  CHECK(refusal(make_all_gather, encoded(activation_gradient, kNone, "quant:8")).empty());
  // Sparse encodings have many bits for each element that they send, and lose all others.
  for (const char* sparse : {"topk:0.5", "randk:0.5", "topk:0.6"}) {
    CAPTURE(std::string(sparse));
    CHECK(refusal(make_all_gather, encoded(activation, kNone, sparse)).find("take none") !=
          std::string::npos);
    CHECK(refusal(make_all_gather, encoded(activation_gradient, kNone, sparse)) != "");
  }
  CHECK(refusal(make_all_gather, encoded(exact, kNone, "quant:8")).find("take none") !=
        std::string::npos);
  VectorOptions ring = encoded(gradient, kNone, "quant:8");
  ring.form = CollectiveForm::tree;
  CHECK(refusal(make_all_reduce, ring).find("ring") != std::string::npos);
}

TEST_CASE(
    "groups of one number may have vectors of different lengths, and cut none of their rows") {
  CAPTURE(kSeed);
  constexpr std::size_t kRow = 3;
  constexpr std::size_t kMost = 7 * kRow;
  // Groups of two nodes along "pair", of which the second pair has a row less.
  ProgramJob job{
      .nodes = 4, .grid = "group=2,pair=2", .dimension = kMost, .seed = kSeed, .build = {}};
  job.build = [](const ProgramNode& node) {
    auto program = std::make_unique<ListProgram>();
    ListProgram* const own = program.get();
    const std::span<float> x = node.parameters();
    const std::size_t elements = kMost - (node.rank() < 2 ? 0 : kRow);
    const VectorOptions options{
        .elements = elements, .row = kRow, .bound = {.elements = kMost, .block = 4 * kRow}};
    auto scatter = make_reduce_scatter(node.member("pair"), options);
    auto gather = make_all_gather(node.member("pair"), options);
    CHECK(scatter->own_block().size % kRow == 0);
    for (auto* made : {&scatter, &gather}) {
      VectorCollective* const at = made->get();
      CHECK(at->max_frame_bytes() == kFrameHeaderBytes + 4 * kRow * sizeof(float));
      own->list.push_back({at->signature(),
                           [x, at, elements](const RoundInput& input) {
                             if (at->signature().starts_with("reduce")) {
                               host_ops().copy(input.gradient, x);
                             }
                             at->begin(x.first(elements));
                             return Status();
                           },
                           at, 0});
      own->collectives.push_back(std::move(*made));
    }
    return program;
  };
  job.rounds = 1;
  check_alike(job, drivers());
  const ProgramRun run = ProgramRunner(job).run("eager");
  REQUIRE(run.ok());
  CHECK(same_bits(run.models[0], run.models[1]));
  std::vector<float> in(kMost);
  std::vector<float> sum(kMost);
  for (const Rank rank : {2, 3}) {
    normal_input(kSeed, rank, 0, in);
    host_ops().axpy(1, in, sum);
  }
  CHECK(
      same_bits(std::span(run.models[2]).first(kMost - kRow), std::span(sum).first(kMost - kRow)));
}

TEST_CASE("the usual forms send as few frames and bytes as any, and compress no sums on a ring") {
  CHECK(usual_broadcast_form(3) == CollectiveForm::direct);
  CHECK(usual_broadcast_form(4) == CollectiveForm::tree);
  CHECK(usual_form(16, {}, true) == CollectiveForm::direct);
  CHECK(usual_form(17, {}, true) == CollectiveForm::ring);
  CHECK(usual_form(17, {.compressor = "quant:8"}, true) == CollectiveForm::direct);
  CHECK(usual_form(17, {.data = Carried::activation, .compressor = "quant:8"}, false) ==
        CollectiveForm::ring);
  // A root sends ⌈log₂ p⌉ frames in the tree.
  for (const int p : {2, 3, 4, 5, 8, 9, 31}) {
    const auto steps = broadcast_schedule(CollectiveForm::tree, p, 0, 0, 10).steps;
    CHECK(static_cast<int>(steps.size()) ==
          static_cast<int>(std::ceil(std::log2(static_cast<double>(p)))));
  }
}

}  // namespace sotto::test::vector_collective_test
