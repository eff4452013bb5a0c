// Nodes that change options, end early or have different amounts of data.
#include <algorithm>
#include <chrono>

#include "torch/nets.h"

using namespace torch_test;

namespace {

constexpr int kEndingNodes = 3;

struct End {
  Net net = make_net();
  sotto::Round rounds = 0;
  std::string thrown;
  std::vector<std::string> warnings;
};

using Change = std::function<void(int rank, sotto::Round step, DistributedOptimizer& optimizer)>;

/// Node i has data for `steps` + 3 i `more` steps; all end with the mean of their models.
std::vector<End> train(sotto::OptimizerOptions options, std::size_t steps, std::size_t more,
                       const Change& change = nullptr) {
  options.timeout = std::chrono::hours(1);
  std::vector<End> ends;
  std::vector<std::vector<Batch>> batches;
  for (std::uint64_t rank = 0; rank < kEndingNodes; ++rank) {
    ends.emplace_back();
    batches.push_back(make_batches(static_cast<int>(steps + 3 * rank * more), 8, 60 + rank));
  }
  const auto thrown = play(kEndingNodes, [&](int rank) {
    End& end = ends[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(torch::optim::SGD(end.net->parameters(), 0.1),
                                   at_rank(options, rank));
    try {
      for (const Batch& batch : batches[static_cast<std::size_t>(rank)]) {
        if (change) {
          change(rank, optimizer.node().round(), optimizer);
        }
        take_step(end.net, optimizer, batch);
      }
    } catch (const RunFault& fault) {
      if (fault.status().fault() != sotto::Fault::ended) {
        throw;
      }
    }
    optimizer.finish_with_mean();
    end.rounds = optimizer.node().round();
    end.warnings = optimizer.node().warnings();
  });
  for (std::size_t node = 0; node < kEndingNodes; ++node) {
    ends[node].thrown = thrown[node];
  }
  return ends;
}

void set_rate(DistributedOptimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) {
    group.options().set_lr(rate);
  }
}

}  // namespace

TEST_CASE("torch: nodes with different amounts of data end as join says, or are told") {
  auto options = job(kEndingNodes, "allreduce");
  for (const End& end : train(options, 4, 1)) {
    CAPTURE(end.thrown);
    CHECK(end.thrown.find("after 4 rounds") != std::string::npos);
  }
  for (const sotto::Join join : {sotto::Join::zeros, sotto::Join::stop}) {
    options = job(kEndingNodes, "allreduce");
    options.join = join;
    const auto ends = train(options, 4, 1);
    for (const End& end : ends) {
      CAPTURE(end.thrown);
      CHECK(end.thrown.empty());
      CHECK(end.rounds == ends[0].rounds);
      CHECK(same_bits(end.net, ends[0].net));
    }
    CHECK((join == sotto::Join::zeros ? ends[0].rounds == 10 : ends[0].rounds <= 6));
  }
}

TEST_CASE("torch: a scheduler on all nodes is no difference, and one that is missing is named") {
  const Change decay = [](int, sotto::Round step, DistributedOptimizer& optimizer) {
    set_rate(optimizer, 0.1 / static_cast<double>(1 + step));
  };
  for (const std::string algorithm : {"allreduce", "dpsgd"}) {
    for (const End& end : train(job(kEndingNodes, algorithm), 8, 0, decay)) {
      CAPTURE(end.thrown);
      CHECK(end.thrown.empty());
      CHECK(std::ranges::none_of(end.warnings, [](const std::string& text) {
        return text.find(" steps with ") != std::string::npos;
      }));
    }
  }
  const Change odd = [](int rank, sotto::Round step, DistributedOptimizer& optimizer) {
    if (rank == 1 && step == 3) {
      set_rate(optimizer, 0.0375);
    }
  };
  for (const End& end : train(job(kEndingNodes, "allreduce"), 8, 0, odd)) {
    CAPTURE(end.thrown);
    CHECK(end.thrown.find("0.0375") != std::string::npos);
    CHECK(end.thrown.find("0.1") != std::string::npos);
  }
}

TEST_CASE("torch: other options that one node alone changes are found") {
  const std::vector<Change> changes = {
      [](int rank, sotto::Round step, DistributedOptimizer& optimizer) {
        if (rank == 2 && step == 2) {
          static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options())
              .momentum(0.5);
        }
      },
      [](int rank, sotto::Round step, DistributedOptimizer& optimizer) {
        if (rank == 0 && step == 4) {
          static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options())
              .weight_decay(0.01);
        }
      }};
  for (const Change& change : changes) {
    for (const End& end : train(job(kEndingNodes, "allreduce"), 8, 0, change)) {
      CAPTURE(end.thrown);
      CHECK(end.thrown.find("settings that were changed since the start") != std::string::npos);
    }
  }
}
