// A training run as lines of JSON: one as it begins, one for each evaluation, one in the end. NaN
// and infinities become null. Implemented as an observer.
#pragma once

#include <string>

#include <sotto/observe/growing_file.h>
#include <sotto/trainers/observer.h>

namespace sotto {

class JsonLines final : public Observer {
 public:
  /// `config`: all settings as a JSON object, for the first line. `tell`: growing_file.h. Throws
  /// Error when the file cannot be written.
  JsonLines(const std::string& path, bool keep, std::string config, Tell tell);

  bool wants_health() const override { return true; }
  void began(const RunStart& start) override;
  void evaluated(const RunEvaluation& evaluation) override;
  void warning(const std::string& text) override;
  void ended(const Status& status) override;

 private:
  GrowingFile file_;
  std::string config_;
};

}  // namespace sotto
