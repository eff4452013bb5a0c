#include "study.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <sotto/topology/registry.h>

namespace sotto::bench {
namespace {

/// Calls task(0) … task(count − 1) from several threads; the first exception is thrown again.
void in_parallel(std::size_t count, unsigned threads,
                 const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t k = next++; k < count; k = next++) {
        task(k);
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < threads; ++i) {
    workers.emplace_back(work);
  }
  work();
  workers.clear();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace

double Standing::mean(std::size_t rate) const {
  const auto& seeds = regret[rate];
  return std::accumulate(seeds.begin(), seeds.end(), 0.0) / static_cast<double>(seeds.size());
}

std::size_t Standing::best_rate() const {
  std::size_t best = 0;
  for (std::size_t rate = 1; rate < regret.size(); ++rate) {
    if (mean(rate) < mean(best)) {
      best = rate;
    }
  }
  return best;
}

std::vector<Learner> learners(const std::string& file, int nodes) {
  const std::string cut = fmt::format("{},cut={}", file, nodes);
  const auto trust = make_topology(cut, nodes);
  return {
      {.name = "isolated", .algorithm = "dpsgd", .graph = isolated(nodes)},
      {.name = "returned trust",
       .algorithm = "dpsgd",
       .graph = make_topology(cut + ",mutual", nodes)},
      {.name = "push-sum", .algorithm = "pushsum", .graph = trust},
      {.name = "central", .algorithm = "allreduce", .graph = nullptr},
      {.name = "push-sum quant:8", .algorithm = "pushsum", .compressor = "quant:8", .graph = trust},
      {.name = "push-sum quant:4", .algorithm = "pushsum", .compressor = "quant:4", .graph = trust},
      {.name = "push-sum sign", .algorithm = "pushsum", .compressor = "sign", .graph = trust},
      {.name = "push-sum by halves", .algorithm = "pushsum", .graph = in_turns(*trust, 2)},
      {.name = "push-sum, even ω", .algorithm = "pushsum", .graph = evened(*trust)}};
}

Case run_case(const std::shared_ptr<const Dataset>& pool, std::span<const Learner> learners,
              const StudyOptions& options) {
  Case result;
  result.data = pool->name();
  result.stream = options.stream;
  std::vector<std::unique_ptr<const Stream>> streams(options.seeds);
  result.hindsight.resize(options.seeds);
  in_parallel(options.seeds, options.threads, [&](std::size_t k) {
    StreamOptions stream = options.stream;
    stream.seed = k + 1;
    streams[k] = std::make_unique<Stream>(pool, stream);
    result.hindsight[k] = streams[k]->best_fixed_loss();
  });
  result.rounds = streams[0]->rounds();

  const std::size_t rates = options.rates.size();
  std::vector<Play> plays(learners.size() * rates * options.seeds);
  in_parallel(plays.size(), options.threads, [&](std::size_t k) {
    const std::size_t seed = k % options.seeds;
    const std::size_t rate = k / options.seeds % rates;
    const Learner& learner = learners[k / options.seeds / rates];
    plays[k] = play(learner, *streams[seed], options.rates[rate], seed + 1);
  });

  std::size_t at = 0;
  for (const Learner& learner : learners) {
    Standing& standing = result.standings.emplace_back();
    standing.name = learner.name;
    standing.regret.assign(rates, std::vector<double>(options.seeds));
    for (std::size_t rate = 0; rate < rates; ++rate) {
      for (std::size_t seed = 0; seed < options.seeds; ++seed, ++at) {
        standing.regret[rate][seed] = plays[at].loss - result.hindsight[seed];
        if (rate == 0) {
          standing.bytes += plays[at].bytes / static_cast<double>(options.seeds);
          standing.mass = std::min(standing.mass, plays[at].mass);
        }
      }
    }
  }
  return result;
}

std::size_t seeds_in_order(const Case& result, std::size_t above, std::size_t below) {
  const auto more = result.standings[above].best();
  const auto less = result.standings[below].best();
  std::size_t count = 0;
  for (std::size_t seed = 0; seed < more.size(); ++seed) {
    if (more[seed] > less[seed]) {
      ++count;
    }
  }
  return count;
}

}  // namespace sotto::bench
