// The program `gloo_trainer`: one process of synchronous SGD whose gradients are averaged through
// one of Gloo's own collectives: the same tasks, models, data and batches as `sotto train`. Rank 0
// prints the history as JSON.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sotto/kernels/host/host_ops.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "collectives.h"

namespace {

using sotto::peers::Averager;
using Clock = std::chrono::steady_clock;

struct Request {
  sotto::peers::Place place;
  sotto::peers::CollectiveOptions collective;
  std::string task = "digits";
  std::string model;
  std::size_t batch = 32;
  double lr = 0.1;
  std::uint64_t seed = 0;
  sotto::Round rounds = 100;
  sotto::Round eval_every = 10;
};

void add_options(CLI::App& program, Request& request) {
  add_place_options(program, request.place);
  program.add_option("--collective", request.collective.name, "As of gloo_peer");
  program.add_flag("--half", request.collective.half, "Gradients travel as fp16");
  program.add_option("--task", request.task, "As of `sotto train`; so are all below");
  program.add_option("--model", request.model);
  program.add_option("--batch", request.batch);
  program.add_option("--lr", request.lr);
  program.add_option("--seed", request.seed);
  program.add_option("--rounds", request.rounds);
  program.add_option("--eval-every", request.eval_every);
}

/// Stands still during evaluations.
class Stopwatch {
 public:
  void go() { since_ = Clock::now(); }
  void pause() { sum_ += Clock::now() - since_; }
  double seconds() const { return std::chrono::duration<double>(sum_).count(); }

 private:
  Clock::time_point since_;
  Clock::duration sum_{};
};

void train(const Request& request) {
  const auto& place = request.place;
  const auto data = sotto::load_task(request.task);
  sotto::require_own_gradients(*data, "Gloo's trainer");
  const sotto::TaskFactory tasks(
      data,
      {.model = request.model, .batch = request.batch, .nodes = place.size, .seed = request.seed});
  const auto task = tasks.make(place.rank);
  std::vector<float> x(task->dimension());
  task->initialize(x, request.seed);
  Averager averager(place, request.collective, x.size());
  nlohmann::ordered_json history = nlohmann::ordered_json::array();
  Stopwatch watch;
  averager.meet_again();
  for (sotto::Round round = 1; round <= request.rounds; ++round) {
    watch.go();
    task->loss_and_gradient(round - 1, x, averager.values());
    averager.run();
    sotto::host_ops().axpy(static_cast<float>(-request.lr), averager.values(), x);
    watch.pause();
    if (round % request.eval_every == 0 || round == request.rounds) {
      if (place.rank == 0) {
        const sotto::Evaluation found = task->evaluate(x);
        history.push_back({{"round", round},
                           {"time_s", watch.seconds()},
                           {"loss", found.loss},
                           {"accuracy", found.accuracy}});
      }
      averager.meet_again();  // the others do not wait for the evaluation on the clock
    }
  }
  if (place.rank == 0) {
    fmt::print("{}\n",
               nlohmann::ordered_json{
                   {"rounds", request.rounds}, {"dimension", x.size()}, {"history", history}}
                   .dump());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("One process of SGD whose gradients a collective of Gloo's averages",
                   "gloo_trainer");
  Request request;
  add_options(program, request);
  return sotto::peers::run_peer(program, argc, argv, [&] { train(request); });
}
