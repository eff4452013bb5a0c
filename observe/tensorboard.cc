#include <sotto/observe/tensorboard.h>

#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/unix_time.h>
#include <sotto/observe/event_record.h>
#include <sotto/observe/figures.h>

namespace sotto {
namespace {

/// A name that no other process gives, and that begins as TensorBoard expects.
std::string event_file_in(const std::string& folder) {
  if (!has_event_records()) {
    refuse("tensorboard", folder,
           "this build cannot write TensorBoard's files; build it with ISA-L (libisal-dev)");
  }
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (!std::filesystem::is_directory(folder)) {
    refuse("tensorboard", folder, "it is no folder, and none can be made there");
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) {
    host = {"localhost"};
  }
  return fmt::format("{}/events.out.tfevents.{:010.0f}.{}.{}.0", folder, std::floor(unix_time()),
                     host.data(), ::getpid());
}

}  // namespace

TensorBoard::TensorBoard(const std::string& folder, Tell tell)
    : file_("tensorboard", event_file_in(folder), /*keep=*/false, std::move(tell)) {
  file_.append(version_record(unix_time()));
}

void TensorBoard::evaluated(const RunEvaluation& evaluation) {
  std::vector<EventScalar> scalars;
  for (const RunFigure& figure : run_figures()) {
    const double value = figure.value(evaluation);
    if (!std::isnan(value)) {
      scalars.push_back(
          {fmt::format("{}/{}", figure.info.group, figure.info.name), static_cast<float>(value)});
    }
  }
  file_.append(
      scalars_record(unix_time(), static_cast<std::int64_t>(evaluation.point.round), scalars));
}

}  // namespace sotto
