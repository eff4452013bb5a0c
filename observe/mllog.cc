#include <sotto/observe/mllog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <sotto/trainers/result.h>

#include "internal/json.h"

namespace sotto {
namespace {

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

enum class Kind { point, start, stop };

std::string line_of(Kind kind, const char* key, const Json& value, Json metadata = Json::object()) {
  const char* type = kind == Kind::start  ? "INTERVAL_START"
                     : kind == Kind::stop ? "INTERVAL_END"
                                          : "POINT_IN_TIME";
  metadata["file"] = "sotto";
  metadata["lineno"] = 0;
  const Json line = {{"namespace", ""}, {"time_ms", now_ms()}, {"event_type", type},
                     {"key", key},      {"value", value},      {"metadata", metadata}};
  return ":::MLLOG " + json_text(line) + "\n";
}

Json epoch_of(const RunStart& start, Round done) {
  return {{"epoch_num", static_cast<double>(done) /
                            static_cast<double>(std::max<Round>(1, start.rounds_per_epoch))},
          {"step_num", done}};
}

}  // namespace

Mllog::Mllog(const std::string& path, bool keep, MllogSettings settings, Tell tell)
    : file_("mllog", path, keep, std::move(tell)), settings_(std::move(settings)) {
  for (const std::string& line : {
           line_of(Kind::start, "init_start", nullptr),
           line_of(Kind::point, "submission_benchmark", settings_.benchmark),
           line_of(Kind::point, "submission_platform", "sotto " SOTTO_VERSION),
           line_of(Kind::point, "seed", settings_.seed),
           line_of(Kind::point, "global_batch_size", settings_.global_batch_size),
           line_of(Kind::point, "opt_name", settings_.optimizer),
           line_of(Kind::point, "opt_base_learning_rate", settings_.learning_rate),
       }) {
    file_.append(line);
  }
}

void Mllog::began(const RunStart& start) {
  start_ = start;
  file_.append(line_of(Kind::stop, "init_stop", nullptr));
  file_.append(line_of(Kind::start, "run_start", nullptr));
  block_from_ = start.done;
  open_block();
}

void Mllog::open_block() {
  Json metadata = epoch_of(start_, block_from_);
  metadata["first_epoch_num"] = metadata["epoch_num"];
  file_.append(line_of(Kind::start, "block_start", nullptr, std::move(metadata)));
}

void Mllog::close_block(Round done) {
  Json metadata = epoch_of(start_, block_from_);
  metadata["first_epoch_num"] = metadata["epoch_num"];
  metadata["epoch_count"] = epoch_of(start_, done - block_from_)["epoch_num"];
  file_.append(line_of(Kind::stop, "block_stop", nullptr, std::move(metadata)));
  block_from_ = done;
}

void Mllog::evaluation_began(Round done) {
  close_block(done);
  file_.append(line_of(Kind::start, "eval_start", nullptr, epoch_of(start_, done)));
}

void Mllog::evaluated(const RunEvaluation& evaluation) {
  if (evaluation.report) {
    return;
  }
  const Round done = evaluation.point.round;
  const Json epoch = epoch_of(start_, done);
  if (!std::isnan(evaluation.point.accuracy)) {
    file_.append(line_of(Kind::point, "eval_accuracy", evaluation.point.accuracy, epoch));
  }
  if (!std::isnan(evaluation.point.r2)) {
    file_.append(line_of(Kind::point, "eval_r2", evaluation.point.r2, epoch));
  }
  file_.append(line_of(Kind::point, "eval_loss", evaluation.point.loss, epoch));
  file_.append(line_of(Kind::stop, "eval_stop", nullptr, epoch));
  if (done != start_.rounds) {
    open_block();
  }
}

void Mllog::ended(const Status& status) {
  file_.append(
      line_of(Kind::stop, "run_stop", nullptr, {{"status", status.ok() ? "success" : "aborted"}}));
}

}  // namespace sotto
