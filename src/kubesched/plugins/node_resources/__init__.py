"""What the plugins that look at resources share: columns, scoring strategies, exact arithmetic."""
