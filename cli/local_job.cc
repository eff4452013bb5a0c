#include "local_job.h"

#include <fstream>
#include <string>

#include <fmt/format.h>

#include <sotto/base/json_text.h>
#include <sotto/comm/local_store.h>
#include <sotto/console/signals.h>
#include <sotto/trainers/launch/local_processes.h>
#include <sotto/trainers/launch/private_directory.h>

namespace sotto::cli {
namespace {

Status write_result(const std::string& path, const Json& result) {
  std::ofstream file(path);
  file << json_text(result);
  file.close();
  return file ? Status() : Status(Fault::io, fmt::format("{} could not be written", path));
}

}  // namespace

Result<Json> run_local_job(int nodes, const LocalNode& node, const char* notice,
                           std::chrono::milliseconds farewell) {
  const PrivateDirectory folder;
  const LocalStore store;
  const std::string result_path = folder.path() + "/result.json";
  console::catch_stop_signals(notice);
  const auto node_main = [&](Rank rank) {
    const auto result = node(rank, store.open());
    return result.ok() && rank == 0 ? write_result(result_path, *result) : result.status();
  };
  if (Status status =
          run_processes(nodes, node_main, console::stop_requested(), kLocalGrace, farewell);
      !status.ok()) {
    return status;
  }
  std::ifstream file(result_path);
  return Json::parse(file);
}

}  // namespace sotto::cli
