// Where a peer stands among its like, as its command line says. One thread at a time.
#pragma once

#include <functional>
#include <string>

#include <CLI/App.hpp>

namespace sotto::peers {

struct Place {
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";  ///< the IP address to listen on
  std::string store;                  ///< an empty folder to meet in
  double timeout_s = 120;             ///< the longest that any wait may take
};

/// `place` must live as long as the program.
void add_place_options(CLI::App& program, Place& place);

/// Runs `work` with the command line, and says on standard error why it could not be done. Returns
/// the exit status: 0 done, 1 failed, 2 a wrong request.
int run_peer(CLI::App& program, int argc, char** argv, const std::function<void()>& work);

}  // namespace sotto::peers
