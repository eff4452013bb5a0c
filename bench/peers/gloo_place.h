// Where a Gloo peer stands among its like, and how they meet: through files in a folder that all of
// them see. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gloo/context.h>
#include <CLI/App.hpp>

namespace sotto::peers {

struct GlooPlace {
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";  ///< to listen on
  std::string store;                  ///< an empty folder
  double timeout_s = 120;             ///< after which any wait is a failure
};

/// `place` must live as long as the program.
void add_place_options(CLI::App& program, GlooPlace& place);

/// Connects member `rank` of the group `name` to all of its `size` members. Throws what Gloo throws
/// when they are not there in time.
std::shared_ptr<gloo::Context> meet(const GlooPlace& place, const std::string& name, int rank,
                                    int size);

/// Returns when all members are there. Throws what Gloo throws when they are not in time.
void meet_again(const std::shared_ptr<gloo::Context>& context);

/// Runs `work` with the command line, and says on standard error why it could not be done. Returns
/// the exit status: 0 done, 1 failed, 2 a wrong request.
int run_peer(CLI::App& program, int argc, char** argv, const std::function<void()>& work);

}  // namespace sotto::peers
