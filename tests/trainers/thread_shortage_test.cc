// A node under way to which the system gives no thread.
#include <chrono>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/stores.h>
#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/optimizer.h>

namespace sotto::test::thread_shortage_test {

using namespace std::chrono_literals;

TEST_CASE("node 0 without a thread for its sign of life has a shortage, and no wrong request") {
  const auto store = make_memory_store();
  const std::vector<float> model = {1.0F, 2.0F};
  StoreCollectives collectives(*store, 0, 1, 10s);
  ModelAverage average(collectives);
  {
    const ThreadShortage shortage(0);
    CHECK_THROWS_AS((void)average.meet(4, model, 0, [](const AveragedModel&) {}), Shortage);
  }
  CHECK(average.meet(5, model, 0, [](const AveragedModel&) {}).ok());
}

TEST_CASE("an optimizer without a thread for its communication ends with a fault of the world") {
  std::vector<float> model = {1.0F, 2.0F};
  OptimizerOptions options;
  options.nodes = 1;
  options.transport = "inproc";
  options.store = make_memory_store();
  options.overlap = true;
  Optimizer optimizer(options, model, {});
  const ThreadShortage shortage(0);
  const Status status = optimizer.connect();
  CHECK(status.fault() == Fault::io);
  CHECK(status.message().find("communication: the system gave 0 of 1 ") != std::string::npos);
  CHECK(optimizer.step(model).fault() == Fault::io);
}

}  // namespace sotto::test::thread_shortage_test
