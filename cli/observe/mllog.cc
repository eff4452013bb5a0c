#include "mllog.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace sotto::cli {
namespace {

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Mllog::Mllog(const std::string& path, bool keep, MllogSettings settings, Tell tell)
    : file_("--mllog", path, keep, std::move(tell)), settings_(std::move(settings)) {
  write(Kind::start, "init_start", nullptr);
  write(Kind::point, "submission_benchmark", settings_.benchmark);
  write(Kind::point, "submission_platform", "sotto " SOTTO_VERSION);
  write(Kind::point, "seed", settings_.seed);
  write(Kind::point, "global_batch_size", settings_.global_batch_size);
  write(Kind::point, "opt_name", settings_.optimizer);
  write(Kind::point, "opt_base_learning_rate", settings_.learning_rate);
}

void Mllog::write(Kind kind, const char* key, const Json& value, Json metadata) {
  const char* type = kind == Kind::start  ? "INTERVAL_START"
                     : kind == Kind::stop ? "INTERVAL_END"
                                          : "POINT_IN_TIME";
  metadata["file"] = "sotto train";
  metadata["lineno"] = 0;
  const Json line = {{"namespace", ""}, {"time_ms", now_ms()}, {"event_type", type},
                     {"key", key},      {"value", value},      {"metadata", metadata}};
  file_.append(":::MLLOG " + line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json Mllog::epoch(Round done) const {
  return {{"epoch_num", static_cast<double>(done) /
                            static_cast<double>(std::max<Round>(1, start_.rounds_per_epoch))},
          {"step_num", done}};
}

void Mllog::began(const RunStart& start) {
  start_ = start;
  write(Kind::stop, "init_stop", nullptr);
  write(Kind::start, "run_start", nullptr);
  block_from_ = start.done;
  open_block();
}

void Mllog::open_block() {
  Json metadata = epoch(block_from_);
  metadata["first_epoch_num"] = metadata["epoch_num"];
  write(Kind::start, "block_start", nullptr, std::move(metadata));
}

void Mllog::close_block(Round done) {
  Json metadata = epoch(block_from_);
  metadata["first_epoch_num"] = metadata["epoch_num"];
  metadata["epoch_count"] = epoch(done - block_from_)["epoch_num"];
  write(Kind::stop, "block_stop", nullptr, std::move(metadata));
  block_from_ = done;
}

void Mllog::evaluation_began(Round done) {
  close_block(done);
  write(Kind::start, "eval_start", nullptr, epoch(done));
}

void Mllog::evaluated(const RunEvaluation& evaluation) {
  const Round done = evaluation.point.round;
  if (!std::isnan(evaluation.point.accuracy)) {
    write(Kind::point, "eval_accuracy", evaluation.point.accuracy, epoch(done));
  }
  write(Kind::point, "eval_loss", evaluation.point.loss, epoch(done));
  write(Kind::stop, "eval_stop", nullptr, epoch(done));
  if (done < start_.rounds) {
    open_block();
  }
}

void Mllog::ended(const Status& status) {
  write(Kind::stop, "run_stop", nullptr, {{"status", status.ok() ? "success" : "aborted"}});
}

}  // namespace sotto::cli
