// Scenarios as texts, and `sotto simulate` on them.
#pragma once

#include <string>

#include "cli/program.h"

namespace sotto::test {

/// Line 1 is the version, 2 the runs, 3 the nodes, 4 the network, 5 the task, 6 `more`.
inline std::string scenario(const std::string& nodes, const std::string& network,
                            const std::string& more = "",
                            const std::string& runs = "\"allreduce\", \"dcd quant:8 ring\"") {
  return "sotto-scenario = 1\nrun = [" + runs + "]\nnodes = { " + nodes + " }\nnetwork = { " +
         network +
         " }\ntask = { task = \"digits,train=320,test=100\", model = \"softmax\", rounds = 12, "
         "eval-every = 4 }\n" +
         more;
}

inline const std::string kNodes = "count = 4, gradient = \"lognormal:20 ms,0.3\"";
inline const std::string kNetwork = "link = \"wan\"";

inline Ended simulate(const Scratch& scratch, const std::string& text, const Arguments& more = {}) {
  Arguments all = {"simulate", scratch.write("s.toml", text).string()};
  all.insert(all.end(), more.begin(), more.end());
  return run(all);
}

inline nlohmann::json simulated(const Scratch& scratch, const std::string& text,
                                const Arguments& more = {}) {
  Arguments all = more;
  all.insert(all.end(), {"--json", "-"});
  return simulate(scratch, text, all).json();
}

}  // namespace sotto::test
