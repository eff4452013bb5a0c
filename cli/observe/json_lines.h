// A training run as lines of JSON: one as it begins, one for each evaluation, one in the end. What
// is no number is null. As an observer.
#pragma once

#include <string>

#include <sotto/trainers/observer.h>

#include "growing_file.h"
#include "output.h"

namespace sotto::cli {

class JsonLines final : public Observer {
 public:
  /// `config`: all settings, for the first line. `tell`: growing_file.h. Throws Error when the file
  /// cannot be written.
  JsonLines(const std::string& path, bool keep, Json config, Tell tell);

  bool wants_health() const override { return true; }
  void began(const RunStart& start) override;
  void evaluated(const RunEvaluation& evaluation) override;
  void warning(const std::string& text) override;
  void ended(const Status& status) override;

 private:
  /// A line: the event and when it is, then the fields.
  void write(const char* event, const Json& fields);

  GrowingFile file_;
  Json config_;
};

}  // namespace sotto::cli
