// Every registry that a program can call guesses what a misspelt name means.
#include <functional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/transport.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/aggregation.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/optim/schedule.h>
#include <sotto/optim/step_rule.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/catalog.h>
#include <sotto/trainers/data/partition.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::test::misspelt_names_test {

TEST_CASE("a misspelt name is refused by every registry with a guess") {
  struct Case {
    std::string_view meant;
    std::function<void()> ask;
  };
  const Case cases[] = {
      {"quant", [] { make_compressor("qant:8"); }},
      {"quant", [] { make_compressor("qant:4; 1d=none"); }},
      {"choco", [] { make_algorithm("chocoo", {}); }},
      {"ring", [] { make_topology("rign", 4); }},
      {"metropolis", [] { parse_weighting("metroplis"); }},
      {"inproc", [] { static_cast<void>(make_transport("inprocc", {})); }},
      {"digits", [] { load_task("digts"); }},
      {"softmax", [] { make_model("sofmax", {}); }},
      {"dirichlet", [] { parse_partition("dirichlt:0.1"); }},
      {"cosine", [] { parse_schedule("cosin", 100); }},
      {"adam", [] { make_step_rule({.rule = "adm"}); }},
      {"warmup", [] { parse_bias_correction("warmpu"); }},
      {"krum", [] { make_aggregation("krumm:1", 4, 8, host_ops()); }},
      {"sign-flip", [] { parse_attack("sign-flop"); }},
      {"models", [] { catalog_json("model"); }},
  };
  for (const Case& one : cases) {
    CAPTURE(one.meant);
    std::string message;
    try {
      one.ask();
    } catch (const Error& error) {
      message = error.what();
    }
    CAPTURE(message);
    const std::string guess = "did you mean " + std::string(one.meant) + "?";
    CHECK(message.find(guess) != std::string::npos);
    CHECK(message.find("did you mean") == message.rfind("did you mean"));
  }
}

}  // namespace sotto::test::misspelt_names_test
