// A training run in MLPerf's log format: lines ":::MLLOG {…}" with the keys of its loggers
// (github.com/mlcommons/logging), which compliance checkers and result tables read. As an observer.
#pragma once

#include <cstdint>
#include <string>

#include <sotto/observe/growing_file.h>
#include <sotto/trainers/observer.h>

namespace sotto {

/// The settings of a run that MLPerf's keys ask for.
struct MllogSettings {
  std::string benchmark;  ///< name of the task, which the line submission_benchmark gives
  std::uint64_t seed = 0;
  std::uint64_t global_batch_size = 0;
  std::string optimizer;
  double learning_rate = 0;
};

class Mllog final : public Observer {
 public:
  /// `tell`: growing_file.h. Throws Error when the file cannot be written.
  Mllog(const std::string& path, bool keep, MllogSettings settings, Tell tell);

  void began(const RunStart& start) override;
  void evaluation_began(Round done) override;
  void evaluated(const RunEvaluation& evaluation) override;
  void ended(const Status& status) override;

 private:
  void open_block();
  void close_block(Round done);

  GrowingFile file_;
  MllogSettings settings_;
  RunStart start_;
  Round block_from_ = 0;
};

}  // namespace sotto
